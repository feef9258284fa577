import time, sys
from tests.conftest import Project
def test_time(project: Project, monkeypatch) -> None:
    for words in (["lock","tiny"],["create","tiny"],["remove","tiny"],["create","tiny"],["create","tiny"]):
        t=time.monotonic(); e=project.call(*words); print(words, time.monotonic()-t)
    t=time.monotonic(); e=project.run("create","tiny"); print(words, time.monotonic()-t, e)
def test_time2(project: Project, monkeypatch) -> None:
    test_time(project,monkeypatch)
