"""Words of developers that mean nearly the same, by which a task finds a skill that words it otherwise.

General vocabulary, of no particular set of skills. See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from cockpit.orient.skills.stem_words import stem

_GROUPS = """
bug defect crash error exception traceback stacktrace fail fault broken hang freeze wrong incorrect debug
slow fast speed latency performance bottleneck profile throughput hot
memory ram leak heap allocation
test spec coverage assertion verify check unit pytest jest mock
flaky intermittent unstable sometimes
review feedback diff merge-request pr critique approve
refactor clean tidy simplify restructure extract rename duplicate duplication copied split
document documentation docs readme docstring guide tutorial manual explain
commit branch merge rebase squash stash revert cherry bisect git history revision
conflict marker merge
api endpoint rest http route interface openapi
page paging pagination paginate cursor
breaking compatible compatibility deprecate version
excel spreadsheet xlsx csv workbook
word docx letter contract
powerpoint slide deck presentation pptx
pdf scan form
design style layout visual look typography colour color theme boring
accessibility a11y wcag aria contrast keyboard screenreader
react jsx tsx hook component render
typescript ts tsc
css flexbox grid responsive overflow overlap align center breakpoint phone mobile
browser playwright selenium click screenshot e2e end-to-end
python py pip wheel pypi
publish release package
type annotation annotate mypy pyright protocol
async asyncio await coroutine loop
sql query select join explain index database db
schema migration column table backfill downtime
cache caching ttl expire invalidate stale redis
postgres postgresql vacuum autovacuum replication standby
search relevance index elasticsearch opensearch
etl pipeline airflow load warehouse
pandas dataframe frame notebook csv plot
model train classifier regression overfit precision recall ml training
prompt llm assistant eval
docker container image dockerfile compose
kubernetes k8s pod helm rollout deployment crashloopbackoff
terraform tf infrastructure iac
aws lambda s3 iam ecs vpc cdk
ci pipeline workflow actions build red green
log logging metric trace observability prometheus alert telemetry dashboard monitor
outage incident production down postmortem
linux server systemd ssh disk cron
bash shell script sh
security vulnerability attacker attack injection xss csrf exploit traversal secret
login signin sign auth oauth openid token session
password hash encrypt encryption key crypto
load concurrent user capacity stress
dependency dependencies outdated upgrade update advisory audit package
changelog release notes version customer
translate translation locale language french german i18n l10n plural abroad
regex regexp pattern expression
rust cargo borrow lifetime
go golang goroutine channel
java spring bean jpa maven gradle
ios swift swiftui xcode
android kotlin compose activity
graphql resolver schema
monorepo workspace
skill reusable teach
ui interface screen
race concurrency lock deadlock thread
"""


@cache
def related_stems() -> Mapping[str, frozenset[str]]:
    """Return, by stem, the stems that mean nearly the same, itself not among them."""
    related: dict[str, set[str]] = {}
    for line in _GROUPS.split("\n"):
        group = {stem(word) for word in line.split()}
        for word in group:
            related.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in related.items()}
