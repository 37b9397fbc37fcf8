"""How long `ask` takes without a chat model, and how it grows with the home.

    python bench/devices.py [--sizes 100 1000 10000] [--rounds 5]

Homes of ten commands a device, one room for every ten devices. The sizes take turns, one round each, so that whatever
else the machine does meets all of them; medians of CPU time over all rounds are compared. Building the index and
embedding the command texts are measured apart, and once more after one device was renamed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import time
from pathlib import Path
from typing import Any

from homing.devices import CommandSpec, Device, DeviceRetriever
from report import machine

RESULTS = Path(__file__).parent / "results" / "devices.json"
TYPES = {"light": "灯", "climate": "空调", "fan": "风扇", "cover": "窗帘", "switch": "插座", "media_player": "音箱"}
COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("打开设备", {}), ("关闭设备", {}), ("切换状态", {}), ("设置亮度", {"value_range": [0, 100], "unit": "%"}),
    ("设置温度", {"value_range": [16, 30], "unit": "°C"}), ("设置风速", {"value_range": [0, 100], "unit": "%"}),
    ("设置模式", {"value_list": ["cool", "heat"]}), ("静音", {}), ("暂停", {}), ("查询状态", {}),
]  # fmt: skip
NICKNAMES = [
    "阿福",
    "团子",
    "豆包",
    "年糕",
    "小满",
    "石头",
    "咚咚",
    "麦芽",
    "可乐",
    "芝麻",
    "橘子",
    "布丁",
    "汤圆",
    "栗子",
]


def home(size: int, seed: int = 0) -> list[Device]:
    """A home in which every device has a room, a type, ten commands, and one in four a name of its own."""
    rng = random.Random(seed)
    devices = []
    for number in range(size):
        kind, word = rng.choice(list(TYPES.items()))
        room = f"{number // 10}号房"
        name = f"{rng.choice(NICKNAMES)}{number}" if number % 4 == 0 else f"{room}{word}{number}"
        commands = [
            CommandSpec.model_validate({"id": f"{kind}.{i}", "description": text, **fields})
            for i, (text, fields) in enumerate(COMMANDS)
        ]
        devices.append(Device(id=f"d{number}", name=name, type=kind, room=room, commands=tuple(commands)))
    return devices


def sentences(devices: list[Device], count: int, seed: int = 1) -> dict[str, list[str]]:
    """Sentences of each kind over the home."""
    rng = random.Random(seed)
    picked = [rng.choice(devices) for _ in range(count)]
    rooms = [device.room or "" for device in picked]
    return {
        "by name": [f"打开{device.name}" for device in picked],
        "room and type": [f"把{device.room}的{TYPES[device.type]}关掉" for device in picked],
        "value": [f"{device.room}的空调调到二十六度" for device in picked],
        "misheard name": [f"打开{device.name[:-1]}呀{device.name[-1]}" for device in picked],
        "unknown name": [f"打开不存在的东西{i}" for i in range(count)],
        "except": [f"关掉除{room}以外的灯" for room in rooms[: max(2, count // 10)]],
    }


def milliseconds(start: float) -> float:
    return (time.process_time() - start) * 1000


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[100, 1000, 10_000])
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--sentences", type=int, default=40)
    options = arguments.parse_args()
    retrievers, asked, built = {}, {}, {}
    for size in options.sizes:
        devices = home(size)
        start = time.process_time()
        retriever = DeviceRetriever(devices)
        index_ms = milliseconds(start)
        start = time.process_time()
        retriever.prepare()
        embed_ms = milliseconds(start)
        renamed = [devices[0].model_copy(update={"name": "新名字"}), *devices[1:]]
        start = time.process_time()
        changes = retriever.update(renamed)
        assert changes.changed == ("d0",)
        built[size] = {"index_ms": index_ms, "embed_ms": embed_ms, "rename_one_ms": milliseconds(start)}
        retrievers[size], asked[size] = retriever, sentences(renamed, options.sentences)
        for texts in asked[size].values():
            retriever.ask(texts[0])
    times: dict[int, dict[str, list[float]]] = {size: {kind: [] for kind in asked[size]} for size in options.sizes}
    for _ in range(options.rounds):
        for size in options.sizes:
            for kind, texts in asked[size].items():
                for text in texts:
                    start = time.process_time()
                    retrievers[size].ask(text)
                    times[size][kind].append(milliseconds(start))
    results = {
        str(size): {
            **{name: round(value, 1) for name, value in built[size].items()},
            "ask_p50_ms": round(statistics.median(t for kind in times[size] for t in times[size][kind]), 2),
            "by_kind_p50_ms": {kind: round(statistics.median(values), 2) for kind, values in times[size].items()},
            "by_kind_p95_ms": {kind: round(sorted(v)[int(len(v) * 0.95)], 2) for kind, v in times[size].items()},
        }
        for size in options.sizes
    }
    small, large = str(min(options.sizes)), str(max(options.sizes))
    growth = results[large]["ask_p50_ms"] / results[small]["ask_p50_ms"]  # type: ignore[operator]
    report = {"machine": machine(), "sizes": results, "growth_of_p50": round(growth, 2)}
    print(json.dumps(report, ensure_ascii=False, indent=2))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
