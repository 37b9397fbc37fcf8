// A home drawn as floor plans: rooms share walls, devices stand in them, and light up when they are meant.
// Of a large home a part is drawn, and what a sentence means beside it.

import { h, put } from "./dom.js";
import { deviceIcon } from "./icons.js";
import { t } from "./language.js";

const BY_AREA = 0.62;
const STAGGER = 70;
const WIDE = 27;
const IN_A_ROW = 4;
const MOST_ROOMS = 48;
const MOST_DEVICES = 12;
const MOST_MEANT = 48;

/** The floors of a home; `light(plan)` shows what a sentence means. */
export class FloorPlan {
  constructor(home) {
    this.home = home;
    this.devices = new Map();
    this.rooms = new Map();
    this.places = new Map();
    this.element = h(
      "div",
      { class: "floors" },
      floorsOf(home).map((floor) => this.floor(floor)),
    );
  }

  floor({ name, rooms }) {
    const seen = rooms.slice(0, MOST_ROOMS);
    const plan = h(
      "div",
      { class: "plan" },
      pack(seen).map((row) => this.row(row)),
    );
    for (const room of rooms) for (const device of room.devices) this.places.set(device.id, { device, room, plan });
    const more = rooms.length - seen.length;
    const drawn = h(
      "section",
      { class: "floor", "aria-label": name },
      h("h2", {}, name),
      plan,
      more > 0 && h("p", { class: "small muted" }, t("devices.more-rooms", { n: more })),
    );
    const size = seen.reduce((sum, room) => sum + weight(room), 0);
    drawn.style.flexGrow = String(size);
    drawn.style.flexBasis = `min(100%, ${Math.round(Math.max(260, size * WIDE))}px)`;
    return drawn;
  }

  row(rooms) {
    const line = h(
      "div",
      { class: "plan-row" },
      rooms.map((room) => this.room(room)),
    );
    line.style.flexGrow = String(Math.max(...rooms.map(weight)) ** BY_AREA);
    return line;
  }

  room(room) {
    const seen = room.devices.slice(0, MOST_DEVICES);
    const note = h("p", { class: "small muted" });
    const list = h(
      "ul",
      {},
      seen.map((device) => this.device(device)),
    );
    const drawn = h(
      "div",
      { class: "room", dataset: { room: room.name } },
      h("h3", {}, room.name || t("devices.noroom")),
      list,
      note,
      h("span", { class: "excluded" }, t("devices.left-out")),
    );
    drawn.style.flexGrow = String(weight(room));
    this.rooms.set(room.name, { element: drawn, list, note });
    this.count(room);
    return drawn;
  }

  /** Says how many devices of a room are not drawn. */
  count(room) {
    const { list, note } = this.rooms.get(room.name);
    const more = room.devices.length - list.children.length;
    put(note, more > 0 && t("devices.more", { n: more }));
  }

  /** Draws what is meant and not drawn yet. */
  bring(ids) {
    for (const id of ids.slice(0, MOST_MEANT)) {
      const { device, room, plan } = this.places.get(id) ?? {};
      if (device === undefined) continue;
      if (!this.rooms.has(room.name)) plan.prepend(this.row([room]));
      if (!this.devices.has(id)) this.rooms.get(room.name).list.prepend(this.device(device));
      this.count(room);
    }
  }

  device(device) {
    const badge = h("span", { class: "badge" });
    const drawn = h(
      "li",
      { class: "device", dataset: { device: device.id, type: device.type }, title: device.aliases.join(" · ") || null },
      h("span", { class: "glow" }, deviceIcon(device.type)),
      h("span", { class: "name" }, device.name),
      badge,
    );
    this.devices.set(device.id, { element: drawn, badge });
    return drawn;
  }

  /** Shows what is meant: `meant` are the candidates of the answer, `asked` those it asks about, `excluded` names. */
  light({ meant = [], asked = [], excluded = [] }) {
    const wanted = new Map(meant.map((one, at) => [one.id, { one, at, kind: "meant" }]));
    asked.forEach((one, at) => wanted.has(one.id) || wanted.set(one.id, { one, at, kind: "asked" }));
    this.bring([...wanted.keys()]);
    for (const [id, { element, badge }] of this.devices) {
      const found = wanted.get(id);
      element.classList.toggle("meant", found?.kind === "meant");
      element.classList.toggle("off", found?.kind === "meant" && goesOff(found.one));
      element.classList.toggle("asked", found?.kind === "asked");
      element.style.setProperty("--wait", found === undefined ? "0ms" : `${found.at * STAGGER}ms`);
      if (found !== undefined) put(badge, told(found.one));
      else if (!element.classList.contains("on")) put(badge);
    }
    const left = new Set(excluded);
    for (const [name, { element }] of this.rooms) element.classList.toggle("left-out", left.has(name));
  }

  /** Remembers what was done, so that the next sentence finds the lamps as they are. */
  perform(meant) {
    for (const one of meant) {
      const { element, badge } = this.devices.get(one.id) ?? {};
      if (element === undefined) continue;
      const off = goesOff(one);
      element.classList.toggle("on", !off);
      put(badge, off ? "" : told(one));
    }
  }
}

/** Whether a command ends what a device does: then it is shown dark, not lit. */
function goesOff(one) {
  return /(^|[_-])(off|close|stop|lock)($|[_-])/.test(one.command ?? "");
}

function told(one) {
  if (one.value !== null && one.value !== undefined) return String(one.value);
  if (one.change !== null && one.change !== undefined) return `${one.change > 0 ? "+" : ""}${one.change}`;
  // What a lamp shows by its light needs no words; that it goes dark does.
  if (one.command === "turn_on") return "";
  return one.command === "turn_off" ? t("devices.off") : (one.command ?? "");
}

function weight(room) {
  return 1.6 + Math.min(room.devices.length, 8);
}

/** Floors in the order they are named, each with its rooms; a group of devices stands nowhere. */
function floorsOf(home) {
  const floorOf = new Map(home.rooms.map((room) => [room.name, room.floor]));
  const floors = new Map();
  const roomOn = (floor, name) => {
    const key = floor ?? "";
    if (!floors.has(key)) floors.set(key, new Map());
    const rooms = floors.get(key);
    if (!rooms.has(name)) rooms.set(name, { name, devices: [] });
    return rooms.get(name);
  };
  for (const room of home.rooms) roomOn(room.floor, room.name);
  for (const device of home.devices) {
    if (device.members.length > 0) continue;
    roomOn(device.floor ?? floorOf.get(device.room) ?? null, device.room ?? "").devices.push(device);
  }
  return [...floors]
    .map(([name, rooms]) => ({
      name: name || t(floors.size > 1 ? "devices.elsewhere" : "devices.nofloor"),
      rooms: [...rooms.values()],
    }))
    .filter((floor) => floor.rooms.length > 0);
}

/** Rooms in rows of about the same weight, so that a floor looks like one. */
function pack(rooms) {
  const rows = Math.max(1, Math.round(Math.sqrt(rooms.length / 1.6)), Math.ceil(rooms.length / IN_A_ROW));
  const total = rooms.reduce((sum, room) => sum + weight(room), 0);
  const packed = [[]];
  let filled = 0;
  for (const room of rooms) {
    if (
      packed.length < rows &&
      packed[packed.length - 1].length > 0 &&
      filled + weight(room) / 2 > (total / rows) * packed.length
    )
      packed.push([]);
    packed[packed.length - 1].push(room);
    filled += weight(room);
  }
  return packed;
}
