"""The Grafana dashboard: it asks for metrics that cockpit exports, and by labels that they have."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from cockpit.loop.views.metrics import Metrics

FILE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "grafana-dashboard.json"
NAME = re.compile(r"\b([a-z_]+)\{([^}]*)\}")
BY_SCRAPER = {"job", "instance"}


def exported() -> dict[str, set[str]]:
    """Every sample that a store with rows of each kind exports, with its labels."""
    metrics = Metrics()
    metrics.counts.jobs = {"git": {"ok": 1}}
    metrics.counts.latency_buckets = {"10": 1}
    samples: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(metrics.exposition()):
        for sample in family.samples:
            samples.setdefault(sample.name, set()).update(sample.labels)
    return samples


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    dashboard = json.loads(FILE.read_text(encoding="utf-8"))
    samples = exported()
    shown = set()
    identities = [panel["id"] for panel in dashboard["panels"]]
    assert len(identities) == len(set(identities))
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            selectors = NAME.findall(target["expr"])
            assert selectors, target["expr"]
            for name, matchers in selectors:
                assert name in samples, name
                labels = set(re.findall(r"([a-z_]+)=", matchers))
                grouped = re.findall(r"by \(([a-z_, ]+)\)", target["expr"])
                labels |= {label.strip() for group in grouped for label in group.split(",")}
                shown_labels = set(re.findall(r"\{\{([a-z_]+)\}\}", target["legendFormat"]))
                assert labels - BY_SCRAPER <= samples[name] | {"le"}, (name, labels)
                if len(selectors) == 1:
                    assert shown_labels - BY_SCRAPER <= samples[name], (name, shown_labels)
                shown.add(name)
    for variable in dashboard["templating"]["list"][1:]:
        (name,) = re.findall(r"label_values\(([a-z_]+),", variable["query"])
        assert name in samples
    families = {re.sub(r"_(bucket|count|sum)$", "", name) for name in samples}
    created = {name for name in families if name.endswith("_created")}
    assert {re.sub(r"_bucket$", "", name) for name in shown} == families - created
