"""Alibaba Cloud's chat models (百炼 / Model Studio) in their OpenAI-compatible mode."""

from __future__ import annotations

from typing import Any

from homing.chat.openai import OpenAILLM

DASHSCOPE = "https://dashscope.aliyuncs.com/compatible-mode/v1"


class DashScopeLLM(OpenAILLM):
    """`qwen-flash` and its like; thinking is switched off, because a thinking model answers in no schema.

    Outside mainland China pass `base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1"`.
    """

    provider = "dashscope"

    def __init__(
        self,
        model: str = "qwen-flash",
        *,
        api_key: str = "",
        base_url: str = DASHSCOPE,
        timeout: float = 10.0,
    ) -> None:
        super().__init__(model, api_key=api_key, base_url=base_url, timeout=timeout)

    def _extra(self) -> dict[str, Any]:
        return {"enable_thinking": False}
