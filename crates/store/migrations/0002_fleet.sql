-- Servers, instances, who has which, professions and their pool, chat-bots, and the task queue.

CREATE TABLE server (
    id           {text} NOT NULL PRIMARY KEY,
    id_key       {text} NOT NULL UNIQUE,
    name         {text} NOT NULL,
    host         {text} NOT NULL,
    ssh_port     {int}  NOT NULL,
    ssh_user     {text} NOT NULL,
    ssh_key_path {text} NOT NULL,
    status       {text} NOT NULL,
    notes        {text} NOT NULL,
    created_at   {int}  NOT NULL,
    updated_at   {int}  NOT NULL,
    deleted_at   {int}
);

CREATE TABLE server_metric (
    id             {serial},
    server_id      {text} NOT NULL REFERENCES server (id),
    cpu_percent    {real} NOT NULL,
    memory_percent {real} NOT NULL,
    disk_percent   {real} NOT NULL,
    load_1m        {real} NOT NULL,
    created_at     {int}  NOT NULL
);
CREATE INDEX server_metric_time ON server_metric (server_id, created_at);

CREATE TABLE instance (
    id                {text} NOT NULL PRIMARY KEY,
    id_key            {text} NOT NULL UNIQUE,
    container_id      {text} NOT NULL DEFAULT '',
    server_id         {text} NOT NULL REFERENCES server (id),
    -- The user of the live binding; kept beside it so that idle instances are found by an index.
    assigned_user_id  {text} REFERENCES users (id),
    -- 1 while a live entry of the profession pool has it.
    pooled            {int}  NOT NULL DEFAULT 0,
    name              {text} NOT NULL,
    gateway_port      {int}  NOT NULL,
    gateway_url       {text} NOT NULL,
    gateway_token     {text} NOT NULL,
    model             {text} NOT NULL,
    health_status     {text} NOT NULL,
    health_fail_count {int}  NOT NULL DEFAULT 0,
    total_requests    {int}  NOT NULL DEFAULT 0,
    total_tokens      {int}  NOT NULL DEFAULT 0,
    last_health_at    {int},
    notes             {text} NOT NULL,
    config_json       {text} NOT NULL,
    is_main           {int}  NOT NULL DEFAULT 0,
    home              {text} NOT NULL DEFAULT '',
    unit              {text} NOT NULL DEFAULT '',
    -- Whose traces may still be on it; NULL once it was cleaned.
    traces_of         {text},
    created_at        {int}  NOT NULL,
    updated_at        {int}  NOT NULL,
    deleted_at        {int}
);
CREATE INDEX instance_server ON instance (server_id);
CREATE INDEX instance_created ON instance (created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX instance_idle ON instance (health_status, created_at, id) WHERE deleted_at IS NULL AND assigned_user_id IS NULL AND pooled = 0;

-- Who has which instance. A binding that ended stays, as history.
CREATE TABLE binding (
    id            {text} NOT NULL PRIMARY KEY,
    user_id       {text} NOT NULL REFERENCES users (id),
    instance_id   {text} NOT NULL REFERENCES instance (id),
    -- How it came about: assigned, claimed or profession.
    origin        {text} NOT NULL,
    profession_id {text},
    created_at    {int}  NOT NULL,
    ended_at      {int}
);
CREATE UNIQUE INDEX binding_live ON binding (instance_id) WHERE ended_at IS NULL;
CREATE INDEX binding_user ON binding (user_id, ended_at);
CREATE INDEX binding_history ON binding (instance_id, created_at);

CREATE TABLE profession (
    id           {text} NOT NULL PRIMARY KEY,
    name         {text} NOT NULL,
    code         {text} NOT NULL,
    code_key     {text} NOT NULL UNIQUE,
    icon         {text} NOT NULL,
    tagline      {text} NOT NULL,
    description  {text} NOT NULL,
    role_pack_id {text},
    sort_order   {int}  NOT NULL DEFAULT 0,
    is_official  {int}  NOT NULL DEFAULT 0,
    is_active    {int}  NOT NULL DEFAULT 1,
    created_at   {int}  NOT NULL
);

CREATE TABLE pool_entry (
    id                {text} NOT NULL PRIMARY KEY,
    profession_id     {text} NOT NULL REFERENCES profession (id),
    instance_id       {text} NOT NULL REFERENCES instance (id),
    server_id         {text} NOT NULL REFERENCES server (id),
    status            {text} NOT NULL,
    allocated_user_id {text} REFERENCES users (id),
    allocated_at      {int},
    created_at        {int}  NOT NULL,
    deleted_at        {int}
);
CREATE UNIQUE INDEX pool_entry_instance ON pool_entry (instance_id) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX pool_entry_holder ON pool_entry (profession_id, allocated_user_id) WHERE deleted_at IS NULL AND allocated_user_id IS NOT NULL;
CREATE INDEX pool_entry_stock ON pool_entry (profession_id, status, created_at, id) WHERE deleted_at IS NULL;

CREATE TABLE chat_binding (
    id             {text} NOT NULL PRIMARY KEY,
    instance_id    {text} NOT NULL REFERENCES instance (id),
    platform       {text} NOT NULL,
    bot_token      {text} NOT NULL,
    -- Equal tokens have equal hashes; the token itself is sealed.
    bot_token_hash {text} NOT NULL,
    chat_id        {text} NOT NULL,
    bot_username   {text} NOT NULL,
    is_active      {int}  NOT NULL DEFAULT 1,
    created_at     {int}  NOT NULL,
    deleted_at     {int}
);
CREATE UNIQUE INDEX chat_binding_token ON chat_binding (bot_token_hash) WHERE deleted_at IS NULL;
CREATE INDEX chat_binding_instance ON chat_binding (instance_id);

CREATE TABLE task (
    id              {text} NOT NULL PRIMARY KEY,
    type            {text} NOT NULL,
    payload         {text} NOT NULL,
    status          {text} NOT NULL,
    attempts        {int}  NOT NULL DEFAULT 0,
    -- Failed attempts in the task's whole life: a manual retry starts `attempts` anew, not this.
    failures        {int}  NOT NULL DEFAULT 0,
    -- For administrators; `told` is what the employee may know of it.
    error           {text} NOT NULL DEFAULT '',
    told            {text} NOT NULL DEFAULT '',
    result          {text} NOT NULL DEFAULT '',
    source          {text} NOT NULL,
    -- Two tasks of one instance never run at the same time.
    instance_id     {text},
    -- The employee on whose behalf it runs, who may watch it.
    user_id         {text},
    worker          {text},
    lease_until     {int},
    next_attempt_at {int}  NOT NULL,
    created_at      {int}  NOT NULL,
    updated_at      {int}  NOT NULL
);
CREATE UNIQUE INDEX task_running ON task (instance_id) WHERE status = 'processing';
CREATE INDEX task_due ON task (next_attempt_at, id) WHERE status IN ('pending', 'failed');
CREATE INDEX task_leased ON task (lease_until) WHERE status = 'processing';
CREATE INDEX task_instance ON task (instance_id, type, status);
CREATE INDEX task_status ON task (status, created_at, id);
CREATE INDEX task_created ON task (created_at, id);

CREATE TABLE task_log (
    id         {serial},
    task_id    {text} NOT NULL REFERENCES task (id),
    attempt    {int}  NOT NULL,
    line       {text} NOT NULL,
    created_at {int}  NOT NULL
);
CREATE INDEX task_log_task ON task_log (task_id, id);
