"""Paragraphs are found by meaning, by words, or both; and the answer says how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from homing.documents import DocumentService
from homing.engine import Engine
from homing.errors import InvalidArgument, ModelNotReady, ProviderUnavailable
from homing.records import Mode, VectorRecord
from homing.stores.sqlite import SqliteStore
from homing.testing.fake import FakeEmbedder
from tests.documents.novel import Library, novel, paragraphs

BOOK = """第一章 归途

林婉推开窗，看见院子里的石榴树开花了。

The Treaty of 1898 was signed in Beijing by three ministers.

他把钥匙放在桌上，转身走进雨里。

繁體字寫的一段：圖書館裡沒有人說話。

全角数字１２３和型号ＧＰＴ－４ｏ写在一起。

🍉 西瓜熟了，孩子们围着井台笑。

GPU 显存不足时，请把 batch size 调小。"""


@pytest.fixture
def book(documents: DocumentService) -> DocumentService:
    documents.save("p", "book", BOOK)
    assert documents.flush(120)
    return documents


def found(documents: DocumentService, query: str, **options: object) -> list[str]:
    hits = documents.search("p", query, **{"mode": "keyword", **options})  # type: ignore[arg-type]
    return [hit.text for hit in hits]


def test_meaning_finds_by_shared_meaning_and_orders_by_score(book: DocumentService) -> None:
    answer = book.search("p", "院子里的石榴树", min_score=0.2, mode="semantic")
    assert answer.mode == "semantic"
    assert not answer.degraded
    assert "石榴树" in answer[0].text
    scores = [hit.score for hit in answer if hit.score is not None]
    assert len(scores) == len(answer)
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.2


def test_the_score_is_a_threshold(book: DocumentService) -> None:
    assert len(book.search("p", "院子里的石榴树", min_score=0.999, mode="semantic")) == 0
    assert len(book.search("p", "院子里的石榴树", min_score=None, mode="semantic")) == 7


@pytest.mark.parametrize(
    ("query", "part"),
    [
        ("钥匙", "钥匙"),
        ("图书馆", "圖書館"),
        ("圖書館", "圖書館"),
        ("123", "１２３"),
        ("gpt-4o", "ＧＰＴ－４ｏ"),
        ("🍉", "🍉"),
        ("ministers", "ministers"),
        ("显存 batch", "batch size"),
        ("归途", "归途"),
    ],
)
def test_words_are_found_and_marked(book: DocumentService, query: str, part: str) -> None:
    hit = book.search("p", query, mode="keyword")[0]
    assert part in hit.text
    marked = [BOOK[start:end] for start, end in hit.metadata["highlights"]]
    assert marked
    assert all(one in hit.text for one in marked)
    snippet = hit.metadata["snippet"]
    assert [snippet[start:end] for start, end in hit.metadata["snippet_highlights"]] == marked


@pytest.mark.parametrize("quoted", ['"走进雨里"', "「走进雨里」", "“走进雨里”", "『走进雨里』", "「走進雨裡」"])
def test_a_phrase_must_stand_as_it_is(book: DocumentService, quoted: str) -> None:
    assert found(book, quoted) == ["他把钥匙放在桌上，转身走进雨里。"]


def test_a_misspelt_word_counts_as_what_it_was_read_as(book: DocumentService) -> None:
    answer = book.search("p", "minister 独角兽", mode="keyword")
    assert [hit.keywords for hit in answer] == [("minister",)]
    answer = book.search("p", "ministors 独角兽", mode="keyword")
    assert dict(answer.corrected) == {"ministor": "minister"}
    assert [hit.keywords for hit in answer] == [("minister",)]


def test_words_in_another_order_are_not_the_phrase(book: DocumentService) -> None:
    assert found(book, "「雨里走进」") == []
    assert found(book, '"ministers three"') == []
    assert len(found(book, '"three ministers"')) == 1
    assert found(book, '"Treaty of 1898" Beijing') == ["The Treaty of 1898 was signed in Beijing by three ministers."]


def test_a_phrase_is_found_among_many_texts_with_its_words(documents: DocumentService) -> None:
    parts = [f"说到雨，里面的人走了，进来的是第{number}位客人。" for number in range(400)]
    parts[333] = "他走进雨里，没有回头，这是最后一次。"
    documents.save("p", "d", "\n\n".join(parts))
    assert found(documents, "「走进雨里」") == [parts[333]]


def test_a_lone_quote_is_only_a_sign(book: DocumentService) -> None:
    assert found(book, '钥匙"') == ["他把钥匙放在桌上，转身走进雨里。"]
    assert found(book, "「」") == []
    assert found(book, "") == []


def test_pages_follow_each_other_without_gaps(documents: DocumentService) -> None:
    documents.save("p", "d", novel(90))
    whole = [hit.id for hit in documents.search("p", "夜晚", mode="keyword", top_k=90)]
    pages = [
        [hit.id for hit in documents.search("p", "夜晚", mode="keyword", top_k=20, offset=offset)]
        for offset in range(0, 100, 20)
    ]
    assert [len(page) for page in pages] == [20, 20, 20, 20, 10]
    assert [one for page in pages for one in page] == whole
    assert len(set(whole)) == 90


def test_a_long_paragraph_is_shown_around_what_was_found(documents: DocumentService) -> None:
    documents.save("p", "d", "前面有很多无关的话。" * 8 + "灯塔亮了。" + "后面也有很多无关的话。" * 10)
    [hit] = documents.search("p", "灯塔", mode="keyword")
    snippet = hit.metadata["snippet"]
    assert snippet.startswith("…")
    assert snippet.endswith("…")
    assert len(snippet) <= 122
    [(start, end)] = hit.metadata["snippet_highlights"]
    assert snippet[start:end] == "灯塔"


def test_both_legs_answer_together(book: DocumentService) -> None:
    answer = book.search("p", "石榴树开花", mode="hybrid", min_score=0.0)
    assert answer.mode == "hybrid"
    assert {share.leg for share in answer[0].legs} == {"vector", "keyword"}
    assert answer[0].metadata["document_id"] == "book"


def test_a_search_can_be_kept_to_one_document(book: DocumentService) -> None:
    book.save("p", "other", "另一本书里也有钥匙。")
    assert len(found(book, "钥匙")) == 2
    assert found(book, "钥匙", document="other") == ["另一本书里也有钥匙。"]


def test_without_a_model_words_answer_and_say_so_and_it_recovers(book: DocumentService, embedder: FakeEmbedder) -> None:
    embedder.fail_with = ModelNotReady("the model file is gone")
    answer = book.search("p", "石榴树", mode="semantic")
    assert (answer.mode, answer.degraded, answer.reason) == ("keyword", True, "vector:MODEL_NOT_READY")
    assert answer.notice is not None
    assert answer.notice.zh == "语义搜索暂时不可用，已切换为关键词搜索"
    assert answer.notice.en
    assert "石榴树" in answer[0].text
    assert answer[0].metadata["snippet_highlights"]
    embedder.fail_with = None
    answer = book.search("p", "石榴树", min_score=0.1, mode="semantic")
    assert (answer.mode, answer.degraded, answer.notice) == ("semantic", False, None)


def test_where_embedding_is_off_words_answer_and_say_so(tmp_path: Path) -> None:
    library = Library(tmp_path, None)
    library.documents.save("p", "d", "灯塔亮了。\n\n船靠岸了。")
    answer = library.documents.search("p", "灯塔", mode="semantic")
    assert ([hit.text for hit in answer], answer.degraded) == (["灯塔亮了。"], True)
    assert not library.documents.search("p", "灯塔", mode="keyword").degraded
    library.close()


def test_what_waits_for_its_vector_is_found_by_words_in_every_mode(
    documents: DocumentService, embedder: FakeEmbedder
) -> None:
    documents.save("p", "d", "灯塔亮了，船在远处。")
    assert documents.flush(120)
    embedder.fail_with = ProviderUnavailable("down")
    documents.save("p", "d", "灯塔亮了，船在远处。\n\n灯塔下面站着一个守夜人。")
    assert not documents.flush(10)
    assert [(one.text[:2], one.pending) for one in documents.chunks("p", "d")] == [("灯塔", False), ("灯塔", True)]
    assert (documents.projects()[0].pending, documents.documents("p")[0].pending) == (1, 1)
    for mode in ("keyword", "hybrid"):
        hits = documents.search("p", "灯塔", mode=mode)
        assert sorted(hit.metadata["pending"] for hit in hits) == [False, True]
    embedder.fail_with = None
    hits = documents.search("p", "守夜人 灯塔", min_score=0.0)
    assert [(hit.metadata["pending"], hit.score is None) for hit in hits][-1] in [(True, True), (False, False)]
    assert documents.flush(120)
    assert not any(hit.metadata["pending"] for hit in documents.search("p", "灯塔", mode="keyword"))


def test_a_saved_text_is_found_at_once(documents: DocumentService) -> None:
    documents.save("p", "d", novel(200) + "\n\n最后一句提到了独角兽。")
    assert found(documents, "独角兽") == ["最后一句提到了独角兽。"]


def test_an_edited_paragraph_is_found_by_its_new_words_only(documents: DocumentService) -> None:
    parts = paragraphs(20)
    documents.save("p", "d", "\n\n".join([*parts, "这里原来写着凤凰。"]))
    documents.save("p", "d", "\n\n".join([*parts, "这里现在写着麒麟。"]))
    assert found(documents, "凤凰") == []
    assert found(documents, "麒麟") == ["这里现在写着麒麟。"]


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
def test_a_chunk_that_is_removed_during_the_search_leaves_no_gap(tmp_path: Path, mode: Mode) -> None:
    class Meddling(SqliteStore):
        """Somebody deletes a document while a search reads what it found."""

        deletes: Callable[[], object] | None = None

        def get(self, collection: str, ids: Sequence[str], *, embeddings: bool = True) -> list[VectorRecord]:
            read = super().get(collection, ids, embeddings=embeddings)
            meddle, self.deletes = self.deletes, None
            if meddle is not None:
                meddle()
            return read

    store = Meddling(tmp_path / "homing.db")
    engine = Engine(store, FakeEmbedder(32))
    documents = DocumentService(engine)
    for number in range(6):
        documents.save("p", f"d{number}", f"灯塔 lighthouse {number}")
    assert documents.flush(120)
    first = documents.search("p", "灯塔", mode=mode, top_k=3)[0]
    store.deletes = lambda: documents.delete("p", first.metadata["document_id"])
    left = documents.search("p", "灯塔", mode=mode, top_k=3)
    assert len(left) == 3
    assert first.id not in [hit.id for hit in left]
    engine.close()
    store.close()


def test_what_was_found_by_meaning_says_which_words_it_holds_too(documents: DocumentService) -> None:
    common = [f"灯塔 lighthouse number {number}." for number in range(80)]
    documents.save("p", "many", "\n\n".join(common))
    assert documents.flush(120)
    hits = documents.search("p", "lighthouse 灯塔", top_k=50)
    assert len(hits) == 50
    assert {hit.keywords for hit in hits} == {("lighthouse", "灯塔")}


def test_wrong_questions_are_refused(documents: DocumentService) -> None:
    for options in ({"mode": "magic"}, {"top_k": -1}, {"offset": -1}, {"top_k": 20_000}, {"min_score": 7.0}):
        with pytest.raises(InvalidArgument):
            documents.search("p", "x", **options)
    with pytest.raises(InvalidArgument):
        documents.search("p", None)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument):
        documents.search("", "x")
    assert len(documents.search("nowhere", "x")) == 0
