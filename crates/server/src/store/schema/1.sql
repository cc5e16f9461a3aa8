-- Which life of the store this is: see store/folder.rs.
CREATE TABLE store (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    life INTEGER NOT NULL,
    epoch INTEGER NOT NULL
) STRICT;

-- Who wrote steps and snapshots.
CREATE TABLE programs (
    id INTEGER PRIMARY KEY,
    version TEXT NOT NULL,
    core TEXT NOT NULL,
    UNIQUE (version, core)
) STRICT;

-- The scheduler's steps, a row a batch. `step` is the number of its first; the next row begins where it ends.
CREATE TABLE journal (
    step INTEGER PRIMARY KEY,
    steps INTEGER NOT NULL,
    at_ms INTEGER NOT NULL,
    program INTEGER NOT NULL,
    digest INTEGER,
    crc INTEGER NOT NULL,
    bytes BLOB NOT NULL
) STRICT;

-- The scheduler's state after `step` steps. A row stands here when all its parts do.
CREATE TABLE snapshots (
    step INTEGER PRIMARY KEY,
    at_ms INTEGER NOT NULL,
    program INTEGER NOT NULL,
    digest INTEGER NOT NULL,
    parts INTEGER NOT NULL
) STRICT;

CREATE TABLE snapshot_parts (
    step INTEGER NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (step, part)
) STRICT;

-- The event log.
CREATE TABLE lines (
    seq INTEGER PRIMARY KEY,
    t_ms INTEGER NOT NULL,
    event TEXT NOT NULL,
    workload INTEGER,
    json TEXT NOT NULL
) STRICT;
CREATE INDEX lines_by_time ON lines (t_ms);
CREATE INDEX lines_by_workload ON lines (workload, seq) WHERE workload IS NOT NULL;

-- What lists are filtered by, once each: budgets (0), pools (1), users (2).
CREATE TABLE labels (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (kind, name)
) STRICT;

-- Workloads as lists show them. Each index holds all that a filter asks for, newest last.
CREATE TABLE workloads (
    id INTEGER PRIMARY KEY,
    state INTEGER NOT NULL,
    user INTEGER NOT NULL,
    budget INTEGER NOT NULL,
    pool INTEGER NOT NULL,
    view TEXT NOT NULL
) STRICT;
CREATE INDEX workloads_by_state ON workloads (state, id, budget, pool);
CREATE INDEX workloads_by_user ON workloads (user, state, id, budget, pool);
CREATE INDEX workloads_by_budget ON workloads (budget, state, id, pool);

CREATE TABLE submissions (
    id INTEGER PRIMARY KEY,
    json TEXT NOT NULL
) STRICT;

-- What numbers are called.
CREATE TABLE names (
    kind INTEGER NOT NULL,
    number INTEGER NOT NULL,
    name TEXT NOT NULL,
    PRIMARY KEY (kind, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE changesets (
    id INTEGER PRIMARY KEY,
    pending INTEGER NOT NULL,
    json TEXT NOT NULL
) STRICT;
CREATE INDEX changesets_pending ON changesets (id) WHERE pending;

CREATE TABLE people (
    budget INTEGER PRIMARY KEY,
    json TEXT NOT NULL
) STRICT;

CREATE TABLE tokens (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    revoked INTEGER NOT NULL,
    json TEXT NOT NULL
) STRICT;

CREATE TABLE keys (
    user TEXT NOT NULL,
    key TEXT NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    PRIMARY KEY (user, key)
) STRICT, WITHOUT ROWID;

-- GPU time, summed by the hour (numbered from 1970) in which it was used.
CREATE TABLE charges (
    hour INTEGER NOT NULL,
    budget INTEGER NOT NULL,
    pool INTEGER NOT NULL,
    user INTEGER NOT NULL,
    run INTEGER NOT NULL,
    gpu_ms INTEGER NOT NULL,
    PRIMARY KEY (hour, budget, pool, user, run)
) STRICT, WITHOUT ROWID;

-- The service's own values.
CREATE TABLE service (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
