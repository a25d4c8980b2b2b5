"""Words of developers that belong together, by which a task finds a skill that words it otherwise.

General vocabulary of one topic a group (names of tools, symptoms, other words for it), of no particular set
of skills or prompts. See ``docs/reference/skills.md``, ranking.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from cockpit.orient.skills.stem_words import stem

_GROUPS = """
bug defect crash error exception traceback stacktrace fail failure fault faulty broken break hang
    freeze wrong incorrect debug misbehave glitch weird unexpected mysterious
segfault panic abort coredump crash
cause culprit diagnose diagnosis investigate reproduce reproducible isolate trace debug
regression worked stopped suddenly bug
nan null none undefined nil keyerror typeerror valueerror attributeerror nullpointerexception
    exception error
deadlock race concurrency lock mutex thread hang stuck
slow fast speed latency performance bottleneck profile profiler throughput sluggish lag laggy
    optimize optimise optimization seconds millisecond faster quicker
memory ram leak heap allocation oom garbage gc footprint
cpu core flamegraph hotspot profile profiler bottleneck
test spec coverage assertion verify unit pytest unittest jest vitest mocha junit rspec mock stub
    fake fixture tdd suite
flaky intermittent unstable nondeterministic sporadic random
regress untested test coverage
review reviewer feedback critique approve lgtm nitpick comments audit inspect
pr mr pull diff patch branch review
refactor clean cleanup tidy simplify restructure extract rename duplicate duplication copied split
    decouple modular messy spaghetti readable readability unreadable legacy complexity tangled
    debt dry
deadcode dead unused remove refactor
document documentation docs readme docstring guide tutorial manual handbook wiki howto onboarding
    newcomer
write wording prose text sentence docs
adr decision architecture document
commit branch merge rebase squash stash revert cherry bisect git history revision reflog amend
    push checkout remote upstream fork clone head detached worktree submodule
    gitignore
conflict marker merge rebase
lost recover undo restore git revert
blame author history git
api endpoint rest restful http route interface openapi swagger url webhook contract payload status
page paging pagination paginate cursor offset
breaking compatible compatibility deprecate deprecation version versioning semver
idempotent idempotency retry duplicate
client consumer caller integrator api
sdk library interface api public
excel spreadsheet xlsx xls workbook worksheet sheet cell formula pivot budget figures
csv tsv tabular table excel pandas
chart plot graph diagram figure visualize visualise
word docx doc letter memo contract proposal offer
track tracked redline comments docx
powerpoint slide slides deck presentation pptx ppt keynote talk pitch speaker
pdf scan scanned ocr form invoice receipt brochure
design designer style styling look visual appearance typography font colour color theme palette
    aesthetic beautiful ugly pretty modern polish brand branding landing hero animation whitespace
    mockup figma
ui ux interface screen layout frontend
accessibility accessible a11y wcag aria contrast keyboard screenreader blind disabled disability
    focus tab alt voiceover nvda
react jsx tsx hook hooks component render rerender usestate useeffect usememo context props nextjs
    redux
vue angular svelte component frontend
state effect memo hook react
typescript ts tsc tsconfig typings dts strict generic union narrowing
javascript js node nodejs npm yarn pnpm typescript eslint
css flexbox flex grid responsive overflow overlap align alignment center centered breakpoint phone
    mobile margin padding scss sass tailwind sticky sidebar viewport media
browser playwright selenium cypress puppeteer click clicking screenshot e2e headless chrome
    firefox
website webpage site page browser web
storybook story stories component showcase catalogue gallery isolation
python py pip wheel pypi setuptools poetry uv hatch pyproject setup sdist egg
publish release package ship upload
install installation installer uninstall package
type annotation annotate hint hints mypy pyright protocol generic typeddict typed untyped checker
async asyncio await awaited coroutine event loop aiohttp trio gather cancel cancellation blocking
concurrent concurrency parallel simultaneous async thread
django orm queryset manage model admin middleware template view
flask fastapi starlette pydantic uvicorn http
rails laravel django
sql query queries select join explain index database db mysql mariadb sqlite oracle seqscan cte
    rdbms
report query sql aggregate
schema migration migrate column table backfill downtime alembic flyway liquibase ddl alter
foreign key constraint schema
cache caching cached ttl expire expiry expiration invalidate invalidation stale redis memcached
    stampede memoize evict eviction
postgres postgresql psql vacuum autovacuum replication replica standby pgbouncer pool bloat wal pg
replica replication failover backup standby
search fulltext relevance ranking index elasticsearch opensearch lucene solr analyzer autocomplete
    typo fuzzy synonym
etl elt pipeline airflow dag load warehouse dbt spark bigquery snowflake ingest ingestion batch
    nightly dataset lake kafka
pandas dataframe frame notebook jupyter csv plot numpy polars groupby pivot matplotlib seaborn
average median mean outlier missing group pandas
analyse analysis explore exploration exploratory statistics data
model train trained classifier classify classification regression overfit precision recall ml
    training predict prediction forecast sklearn scikit pytorch tensorflow feature neural accuracy
    dataset label cluster recommend
prompt llm assistant eval gpt claude openai anthropic chatbot hallucinate hallucination completion
    fewshot instruction
mcp tool server claude agent assistant
docker container image dockerfile compose layer podman registry containerize containerise
kubernetes k8s pod helm rollout deployment crashloopbackoff kubectl cluster namespace ingress
    manifest probe replica node
deploy deployment rollout ship launch production staging environment
terraform tf infrastructure iac tofu opentofu pulumi hcl provision module drift
aws lambda s3 iam ecs vpc cdk cloudformation ec2 fargate dynamodb sqs cloudfront bucket amazon
    serverless
cloud gcp azure aws infrastructure
ci pipeline workflow actions build red green github gitlab jenkins runner yaml matrix artifact
log logs logging metric metrics trace traces tracing observability prometheus grafana alert
    alerting telemetry opentelemetry otel dashboard monitor monitoring slo sentry datadog span
    instrument
alert alarm pager paging oncall monitor
outage incident production down downtime postmortem oncall pager emergency mitigate mitigation
    unavailable blackout sev1 hotfix statuspage rootcause
linux server systemd ssh disk cron ubuntu debian centos sudo daemon mount filesystem permission
    firewall journalctl swap host vm
cron schedule scheduled nightly timer hourly daily
bash shell script sh zsh awk sed pipefail shellcheck posix
nginx proxy apache caddy haproxy reverse tls https certificate ssl redirect vhost letsencrypt
    subdomain
certificate tls ssl https cert
rate limit throttle throttling 429 nginx
security secure insecure vulnerability vulnerable attacker attack injection xss csrf ssrf exploit
    traversal secret hack hacker pentest cve owasp malicious sanitize escape untrusted threat
permission authorization authorisation access privilege role
login signin signon signup sign auth authentication authenticate oauth openid oidc sso token
    session jwt saml google pkce account
password hash encrypt encryption decrypt key crypto bcrypt argon2 salt sign signature cipher aes
    rsa random secret
load concurrent capacity stress k6 locust jmeter gatling throughput traffic peak rps percentile
    spike benchmark scale
dependency dependencies outdated upgrade update advisory audit package dependabot renovate
    lockfile bump version cve vulnerable
changelog release notes version customer announcement announce semver tag
translate translation locale language languages french german spanish japanese arabic i18n l10n
    plural multilingual rtl currency timezone localize localise
regex regexp pattern expression match capture lookahead backtracking
rust cargo borrow lifetime borrowck crate trait ownership clippy tokio
go golang goroutine channel gomod
java jvm spring springboot bean jpa hibernate maven gradle tomcat
ios swift swiftui xcode iphone ipad uikit testflight apple
android kotlin compose activity viewmodel jetpack gradle fragment apk
app mobile phone tablet ios android
graphql resolver schema apollo federation mutation dataloader subscription
monorepo workspace workspaces nx turborepo turbo bazel lerna packages affected
skill skills reusable teach learn playbook
accidentally mistake undo recover lost overwrote overwritten restore revert git
disappear vanish missing odd symptom bug debug
confidence guarantee prove safeguard uncovered test
consumer partner integrate integration client contract api
opinion colleague teammate reviewer smell review
giant huge nested unmaintainable maintain maintainable reorganize reorganise structure refactor
instruction chapter glossary overview explanation docs
attachment statement watermark brochure pdf
agreement letter minutes docx
expenses accounting finance quarterly budget total xlsx
board audience conference meeting slides pptx
bland dull generic attractive elegant stylish dated homepage visitor logo design
impaired deaf vision hearing legal accessibility
modal dropdown provider memo react
compiler compile cast casting infer inference undefined typescript
wrap squeezed misaligned position tablet landscape zoom scroll scrollbar width height css
visit navigate journey flow checkout browser
distribute requirements importerror modulenotfounderror package
optional signature any typing
websocket background responsive timeout async
superuser signals django
validation validate endpoint fastapi pydantic
rows records report query sql
rename rollback production migration schema
connections roles settings tablespace postgres
expensive recompute repeated hit miss cache
suggestion suggestions facet find results search elasticsearch
nightly feed sync rerun daily pipeline etl
survey average spreadsheet csv pandas
fraud churn spam predict recommendation score ml
chat bot summary summarise summarize tone invent answer prompt llm
connect integrate assistant mcp
procedure remember reuse reusable skill
gigabyte laptop image container docker
evict evicted autoscale scaling restart cluster kubernetes
destroy provision network staging terraform
bucket queue region cloud aws
nightly runner artifact checks ci
notice notified visible spike correlate dashboard observability
customers apology stakeholder timeline lessons incident
boot reboot machine partition packages linux
loop folder backup arguments script shell
domain subdomain forward static 502 504 gateway upload nginx
steal bypass abuse hole leak intruder security
logged logout account identity social login
protect tamper safely store cryptography
startup eats consumption profile performance
simultaneous survive crowd thousands handle load
latest newest deprecated obsolete upgrade dependency
country countries foreign euro date language locale
git contributor ancestor diverge diverged mainline trunk wip
test scenario boundary sanity smoke acceptance harness parametrize mutation reliable
debug bug die died infinite blank garbage corrupt corrupted rounding repro symptom
api resource verb naming callback webhook rpc grpc subscriber quota bulk
review correctness nit changeset contribution pushback
refactor inline encapsulate abstraction inheritance hierarchy singleton globals coupling cohesion
    circular responsibility convention
docs phrase grammar audience reader mkdocs sphinx javadoc faq runbook article
pdf acrobat searchable redact rotate bookmark
docx heading footnote toc paragraph placeholder mailmerge office libreoffice
xlsx vlookup macro subtotal ledger payroll tax inventory timesheet spreadsheet
pptx bullet handout transition slide
design usability spacing icon illustration gradient dark shadow banner
accessibility narrator talkback tabindex landmark caption subtitle magnify colorblind
react hydration ssr suspense portal refs zustand rerendering keystroke controlled remix vite
typescript enum unknown keyof overload discriminated readonly ambient
css stylesheet selector specificity float absolute gap gutter truncate ellipsis centred
browser webdriver devtools console cookie popup recording playwright
storybook variant chromatic playground preview
packaging conda tox nox editable venv virtualenv twine pypi
typing stubs typeshed covariant contravariant dataclass literal mypy
async semaphore backpressure producer anyio starvation starve deadline
django celery drf wagtail
fastapi gunicorn router microservice crud
sql subquery union distinct partition materialized cardinality
migration downgrade nullable populate cutover expand
postgres dump jsonb checkpoint slot deadlock
redis sentinel pubsub lru lfu leaderboard precompute
elasticsearch shard reindex stopwords highlight boost kibana spelling misspelled
pipeline crawl scrape parquet avro incremental reprocess hadoop prefect dagster cdc streaming
pandas dtype melt resample rolling fillna histogram scatter correlation quantile
ml tune hyperparameter holdout imbalanced embedding xgboost gradient epoch gpu inference anomaly
prompt temperature rag persona jailbreak judge rubric
docker entrypoint volume alpine distroless slim buildkit arm64
kubernetes configmap hpa kustomize argo istio statefulset oomkilled imagepullbackoff eks gke aks
    liveness readiness
terraform tfstate ansible puppet hcl
aws route53 rds kms sns cloudwatch subnet eventbridge
ci circleci travis teamcity buildkite devops badge
observability apm honeycomb loki jaeger zipkin sampling sla uptime heartbeat syslog correlation
incident escalate escalation triage impact severity blameless retrospective failover
linux kernel zombie iptables ufw dns ntp raid lvm nfs inode apt yum chmod chown vps
shell quote glob xargs grep pipe heredoc getopts trap powershell dotfiles
nginx gzip cors location rewrite balancer cdn certbot 404 413
security idor rce clickjacking csp harden hardening compliance gdpr malware phishing exposed spoof
login mfa 2fa otp keycloak auth0 okta cognito ldap passkey webauthn consent claim
cryptography hmac nonce pem gpg pgp ed25519 elliptic keypair rotation vault kdf pbkdf2 scrypt md5
    sha1 sha256 cryptographic
profile pyspy valgrind pprof allocator quadratic vectorize warmup
load vus artillery siege soak saturation tps
dependency pinned unpin eol sunset transitive license sbom snyk
changelog milestone highlights newsletter
monorepo pnpm rush pants polyrepo
rust mutable immutable dereference refcell unwrap serde wasm unsafe
go waitgroup defer gofmt
java jar servlet lombok autowired jdk quarkus
ios storyboard combine coredata cocoapods simulator provisioning macos watchos
android room retrofit intent emulator adb recyclerview hilt dagger rotation
graphql fragment relay hasura introspection
i18n icu gettext crowdin collation utf8 unicode encoding calendar translator
regex greedy lazy lookbehind anchor pcre backreference wildcard substring
"""

_NEXT_GROUP = re.compile(r"\n(?! )")
"""A group goes on in lines that begin with a space."""


@cache
def related_stems() -> Mapping[str, frozenset[str]]:
    """Return, by stem, the stems that belong to it, itself not among them."""
    related: dict[str, set[str]] = {}
    for words in _NEXT_GROUP.split(_GROUPS):
        group = {stem(word) for word in words.split()}
        for word in group:
            related.setdefault(word, set()).update(group - {word})
    return {word: frozenset(others) for word, others in related.items()}
