"""What each error means and what to do next, in Chinese: for people whose texts or machines speak it.

The message of an error says the same more exactly, in English.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_CHINESE: Mapping[str, str] = {
    "BACKPRESSURE": "等待处理的内容太多，请稍后再试",
    "BODY_TOO_LARGE": "内容太大，请分成几次提交",
    "CANCELED": "已取消",
    "INTERRUPTED": "服务器在完成之前已停止，请重新提交",
    "CHAT_FAILED": "对话模型没有回答，请稍后再试",
    "CONFIG_INVALID": "配置有误，请按下面的提示修改",
    "CONFLICT": "同样的工作正在进行，请等它结束再试",
    "EMBEDDING_DIMENSION_MISMATCH": "模型给出的向量长度不对，请检查模型的配置",
    "EMBEDDING_FAILED": "模型没能算出向量，请稍后再试，或在“模型”里换一个",
    "FILE_DAMAGED": "文件已损坏，请换一份完好的",
    "FILE_ENCRYPTED": "文件有密码，请先解除密码再上传",
    "FILE_TOO_COSTLY": "读这个文件太费时间或内存，已停止；请拆开或另存后再试",
    "FILE_TOO_LARGE": "文件太大，请拆开后再上传",
    "FILE_UNREADABLE": "读不了这个文件，请换一份再试",
    "FILE_UNSAFE": "文件展开后大得不合理，已拒绝",
    "FILE_WITHOUT_TEXT": "文件里没有文字（可能是扫描件），请先做文字识别",
    "FORBIDDEN": "这个令牌没有这项权限，请换一个令牌",
    "HEADERS_TOO_LARGE": "请求头太多或太长，请减少后再发",
    "INTERNAL_ERROR": "服务器内部出错，请运行 homing doctor 查看原因",
    "INVALID_ARGUMENT": "输入有误，请按下面的提示修改",
    "INVALID_KEY": "模型服务的密钥无效，请更新密钥",
    "LANCE_SEARCH_ERROR": "技能库打不开，请运行 homing doctor 查看原因",
    "MALFORMED_ANSWER": "模型服务的回答看不懂，请稍后再试",
    "MALFORMED_FORM": "表单不完整，请重新上传",
    "MALFORMED_JSON": "内容不是完整的 JSON，请检查后再发",
    "METHOD_NOT_ALLOWED": "这个地址不接受这种请求",
    "MISSING_EXTRA": "缺少需要的组件，请按下面的命令安装",
    "MODEL_MISMATCH": "这些向量是另一个模型算的，请在“模型”里重新计算",
    "MODEL_NOT_READY": "模型还不能用，请稍后再试，或运行 homing doctor",
    "MODEL_UNKNOWN": "没有这个模型，请先添加",
    "NOT_FOUND": "找不到，可能已被删除或改名",
    "OVERLOADED": "服务器正忙，请稍后再试",
    "PROVIDER_UNAVAILABLE": "连不上模型服务，请检查网络后再试",
    "RATE_LIMITED": "模型服务限制了请求次数，请稍后再试",
    "REFUSED": "服务器没有接受这个请求，请稍后再试",
    "REQUEST_TIMEOUT": "请求没有在规定的时间内传完，请重新发送",
    "RETRIEVAL_FAILED": "搜索没有成功，请稍后再试",
    "STORE_BUSY": "数据库正被占用，请稍后再试",
    "STORE_CORRUPT": "数据已损坏，请运行 homing repair 修复，或恢复备份",
    "STORE_ERROR": "数据库出错，请运行 homing doctor 查看原因",
    "STORE_READ_ONLY": "数据文件夹只能读，请改成可写",
    "STORE_TOO_NEW": "数据是更新的版本写的，请升级 Homing",
    "STORE_CLOSED": "数据已关闭，请重新打开",
    "STORE_TOO_OLD": "数据是第一版写的，新版不再读取；请移走该文件夹，重新添加内容",
    "STORE_UNAVAILABLE": "连不上数据库，请检查后再试",
    "TEXT_TOO_LONG": "文字太长，请分成几段",
    "TIMEOUT": "等得太久，请稍后再试",
    "TOO_MANY_REQUESTS": "请求太频繁，请稍后再试",
    "UNAUTHORIZED": "需要令牌，或令牌无效",
    "UNKNOWN_PROVIDER": "没有这种模型服务，请检查名称",
    "UNSUPPORTED_FILE": "不支持这种文件，请另存为 txt、md、pdf、docx、xlsx 或 epub",
    "VALIDATION_FAILED": "请求的格式有误，请按下面的提示修改",
}
_ANY = "出错了，详情见下"

_FIELDS: Mapping[str, str] = {
    "string_too_short": "至少要有 {min_length} 个字符",
    "string_too_long": "最多 {max_length} 个字符",
    "string_type": "应为文字",
    "int_type": "应为整数",
    "int_parsing": "应为整数",
    "int_from_float": "应为整数",
    "float_type": "应为数字",
    "float_parsing": "应为数字",
    "finite_number": "应为有限的数字",
    "bool_type": "应为 true 或 false",
    "bool_parsing": "应为 true 或 false",
    "greater_than": "应大于 {gt}",
    "greater_than_equal": "不能小于 {ge}",
    "less_than": "应小于 {lt}",
    "less_than_equal": "不能大于 {le}",
    "literal_error": "应为以下之一：{expected}",
    "too_short": "至少要有 {min_length} 项",
    "too_long": "最多 {max_length} 项",
    "list_type": "应为列表",
    "dict_type": "应为 JSON 对象",
    "model_type": "应为 JSON 对象",
    "model_attributes_type": "应为 JSON 对象",
}


def in_chinese(code: str) -> str:
    """A sentence for the code of an error; every code of `homing.errors` has one of its own."""
    return _CHINESE.get(code, _ANY)


def field_in_chinese(kind: str, context: Mapping[str, Any]) -> str:
    """What is wrong with a field, by the kind of problem that pydantic found and its context."""
    return _FIELDS.get(kind, "格式不对").format_map(context).replace("' or '", "' 或 '")


def has_chinese(text: str) -> bool:
    """Whether there is a Chinese character in it."""
    return any("\u3400" <= character <= "\u9fff" for character in text)
