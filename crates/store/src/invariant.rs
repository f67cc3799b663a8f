//! Invariants of the tables. Each rule is a query that finds the records that break it.

use crate::{Db, Result, args, record};

pub struct Rule {
    pub name: &'static str,
    sql: &'static str,
}

record! { struct Offender { id: String } }

/// Every rule there is.
pub const RULES: &[Rule] = &[
    Rule {
        name: "the last department that was recorded of a user is the user's",
        sql: "SELECT u.id AS id FROM users u WHERE u.department <> COALESCE( \
            (SELECT d.department FROM user_department d WHERE d.user_id = u.id ORDER BY d.since DESC LIMIT 1), '?')",
    },
    Rule {
        name: "the user of the live binding is the instance's holder",
        sql: "SELECT i.id AS id FROM instance i LEFT JOIN binding b ON b.instance_id = i.id AND b.ended_at IS NULL \
            WHERE COALESCE(i.assigned_user_id, '') <> COALESCE(b.user_id, '')",
    },
    Rule {
        name: "a key is marked as a revoked user's while one has its instance, and only then",
        sql: "SELECT k.id AS id FROM gateway_key k LEFT JOIN instance i ON i.id = k.instance_id \
            LEFT JOIN users u ON u.id = i.assigned_user_id \
            WHERE k.deleted_at IS NULL AND k.user_revoked <> CASE WHEN u.status = 'revoked' THEN 1 ELSE 0 END",
    },
    Rule {
        name: "a deleted instance has no live binding and no pool entry",
        sql: "SELECT i.id AS id FROM instance i WHERE i.deleted_at IS NOT NULL AND ( \
            EXISTS (SELECT 1 FROM binding b WHERE b.instance_id = i.id AND b.ended_at IS NULL) OR \
            EXISTS (SELECT 1 FROM pool_entry e WHERE e.instance_id = i.id AND e.deleted_at IS NULL))",
    },
    Rule {
        name: "an instance is marked as pooled when a live entry has it, and only then",
        sql: "SELECT i.id AS id FROM instance i WHERE i.pooled <> \
            (SELECT COUNT(*) FROM pool_entry e WHERE e.instance_id = i.id AND e.deleted_at IS NULL)",
    },
    Rule {
        name: "an allocated entry names its user, and nothing else does",
        sql: "SELECT e.id AS id FROM pool_entry e WHERE (e.status = 'allocated') <> (e.allocated_user_id IS NOT NULL) \
            OR (e.allocated_user_id IS NULL) <> (e.allocated_at IS NULL)",
    },
    Rule {
        name: "an allocated entry and the live binding of its instance agree",
        sql: "SELECT e.id AS id FROM pool_entry e WHERE e.deleted_at IS NULL AND e.status = 'allocated' AND NOT EXISTS ( \
            SELECT 1 FROM binding b WHERE b.instance_id = e.instance_id AND b.ended_at IS NULL \
            AND b.user_id = e.allocated_user_id AND b.profession_id = e.profession_id AND b.origin = 'profession')",
    },
    Rule {
        name: "an entry that nobody has is of an instance that nobody has",
        sql: "SELECT e.id AS id FROM pool_entry e JOIN binding b ON b.instance_id = e.instance_id AND b.ended_at IS NULL \
            WHERE e.deleted_at IS NULL AND e.status <> 'allocated'",
    },
    Rule {
        name: "a binding names a profession while it is claimed from the pool, and only then",
        sql: "SELECT b.id AS id FROM binding b WHERE (b.profession_id IS NOT NULL) <> (b.ended_at IS NULL AND b.origin = 'profession')",
    },
    Rule {
        name: "instances of one server are at least ten ports apart",
        sql: "SELECT a.id AS id FROM instance a JOIN instance b ON a.server_id = b.server_id AND a.id <> b.id \
            WHERE a.deleted_at IS NULL AND b.deleted_at IS NULL AND ABS(a.gateway_port - b.gateway_port) < 10",
    },
    Rule {
        name: "what is not kept apart on its server is offered by no pool",
        sql: "SELECT e.id AS id FROM pool_entry e JOIN instance i ON i.id = e.instance_id \
            WHERE e.deleted_at IS NULL AND e.status = 'idle' AND i.isolation IN ('adopted', 'shared')",
    },
    Rule {
        name: "a Unix user that was not removed is of an instance of its server",
        sql: "SELECT u.name AS id FROM unix_user u JOIN instance i ON i.id = u.instance_id \
            WHERE u.removed_at IS NULL AND i.server_id <> u.server_id",
    },
    Rule {
        name: "a running task has a worker and a lease, and no other task has",
        sql: "SELECT t.id AS id FROM task t WHERE (t.status = 'processing') <> (t.worker IS NOT NULL) \
            OR (t.worker IS NULL) <> (t.lease_until IS NULL)",
    },
    Rule {
        name: "no task was tried more than five times in a row, and a failed one has attempts left",
        sql: "SELECT t.id AS id FROM task t WHERE t.attempts < 0 OR t.attempts > 5 OR (t.status = 'failed' AND t.attempts >= 5)",
    },
    Rule {
        name: "an item knows how many files it has and how large they are",
        sql: "SELECT m.id AS id FROM marketplace_item m WHERE m.file_count <> \
            (SELECT COUNT(*) FROM marketplace_file f WHERE f.item_id = m.id) OR m.size <> \
            (SELECT COALESCE(SUM(f.size), 0) FROM marketplace_file f WHERE f.item_id = m.id)",
    },
    Rule {
        name: "an item was installed as often as there are records that say so",
        sql: "SELECT m.id AS id FROM marketplace_item m WHERE m.install_count <> \
            (SELECT COUNT(*) FROM install n WHERE n.item_id = m.id AND n.installed_at IS NOT NULL)",
    },
    Rule {
        name: "an install lives on an instance that does, and has its task",
        sql: "SELECT n.id AS id FROM install n WHERE n.removed_at IS NULL AND ( \
            EXISTS (SELECT 1 FROM instance i WHERE i.id = n.instance_id AND i.deleted_at IS NOT NULL) OR \
            NOT EXISTS (SELECT 1 FROM task t WHERE t.id = n.task_id AND t.instance_id = n.instance_id))",
    },
    Rule {
        name: "a role pack of a profession is one",
        sql: "SELECT p.id AS id FROM profession p WHERE p.role_pack_id IS NOT NULL AND NOT EXISTS ( \
            SELECT 1 FROM marketplace_item m WHERE m.id = p.role_pack_id AND m.kind = 'role_pack' AND m.deleted_at IS NULL)",
    },
    Rule {
        name: "whoever lost an instance of the pool or gave one back has it cleaned, where the platform made it",
        sql: "SELECT b.id AS id FROM binding b JOIN instance i ON i.id = b.instance_id AND i.isolation IN ('none', 'unknown', 'own') \
            WHERE b.ended_at IS NOT NULL AND b.origin = 'profession' AND NOT EXISTS ( \
            SELECT 1 FROM task t WHERE t.instance_id = b.instance_id AND t.type = 'clean_instance' AND t.created_at >= b.ended_at)",
    },
    Rule {
        name: "processes that serve at the same time have one zone of days",
        sql: "SELECT a.name AS id FROM replica a JOIN replica b ON a.zone <> b.zone \
            WHERE a.started_at <= b.lease_until AND b.started_at <= a.lease_until",
    },
    Rule {
        name: "the total of a token is the sum of its days",
        sql: "SELECT d.token_name AS id FROM (SELECT token_name, SUM(requests) AS requests, SUM(errors) AS errors, \
            SUM(prompt_tokens) AS prompt_tokens, SUM(completion_tokens) AS completion_tokens, SUM(quota) AS quota, \
            SUM(quota_rest) AS quota_rest, SUM(known_input_tokens) AS known_input_tokens, SUM(cache_read_tokens) AS cache_read_tokens, \
            SUM(cache_write_tokens) AS cache_write_tokens, SUM(reasoning_tokens) AS reasoning_tokens \
            FROM usage_daily GROUP BY token_name) d LEFT JOIN usage_total t ON t.token_name = d.token_name \
            AND t.known_input_tokens = d.known_input_tokens AND t.cache_read_tokens = d.cache_read_tokens \
            AND t.cache_write_tokens = d.cache_write_tokens AND t.reasoning_tokens = d.reasoning_tokens \
            AND t.requests = d.requests AND t.errors = d.errors AND t.prompt_tokens = d.prompt_tokens \
            AND t.completion_tokens = d.completion_tokens AND t.quota = d.quota AND t.quota_rest = d.quota_rest WHERE t.token_name IS NULL",
    },
    // Counted, not compared by time: a clock may be set back within a transaction.
    Rule {
        name: "every claim enqueued its task",
        sql: "SELECT MIN(b.id) AS id FROM binding b WHERE b.origin <> 'assigned' GROUP BY b.user_id, b.instance_id \
            HAVING COUNT(*) > (SELECT COUNT(*) FROM task t WHERE t.instance_id = b.instance_id AND t.user_id = b.user_id \
            AND t.type IN ('init_instance', 'bootstrap_profession_instance'))",
    },
    Rule {
        name: "every claim is in the audit log",
        sql: "SELECT MIN(b.id) AS id FROM binding b WHERE b.origin <> 'assigned' GROUP BY b.instance_id \
            HAVING COUNT(*) > (SELECT COUNT(*) FROM audit_log a WHERE a.action = 'shrimp.claim' AND a.target = b.instance_id \
            AND (a.detail LIKE '%claimed by %' OR a.detail LIKE '%given to %'))",
    },
    Rule {
        name: "every failed attempt is in the audit log",
        sql: "SELECT t.id AS id FROM task t WHERE t.failures <> \
            (SELECT COUNT(*) FROM audit_log a WHERE a.action = 'task.failed' AND a.target = t.id)",
    },
];

/// The number of rules, from the first on, that are about bindings and pool entries.
pub const OF_BINDINGS: usize = 8;

/// The violations of the first `first` rules: the rule and the record.
pub async fn broken_of(db: &Db, first: usize) -> Result<Vec<(&'static str, String)>> {
    let mut all = vec![];
    for rule in RULES.iter().take(first) {
        let offenders: Vec<Offender> = db.all(rule.sql, args![]).await?;
        all.extend(offenders.into_iter().map(|o| (rule.name, o.id)));
    }
    Ok(all)
}

/// All violations: the rule and the record. The last three rules hold only until retention deletes old audit entries
/// and tasks.
pub async fn broken(db: &Db) -> Result<Vec<(&'static str, String)>> {
    broken_of(db, RULES.len()).await
}
