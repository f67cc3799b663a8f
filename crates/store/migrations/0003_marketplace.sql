-- The marketplace: items with their files, and which item is on which instance.

CREATE TABLE marketplace_item (
    id            {text} NOT NULL PRIMARY KEY,
    -- skill, role_pack or config.
    kind          {text} NOT NULL,
    name          {text} NOT NULL,
    description   {text} NOT NULL,
    icon          {text} NOT NULL,
    version       {text} NOT NULL,
    -- Counts up when the files change, so that an instance can be brought up to date whatever the version says.
    revision      {int}  NOT NULL DEFAULT 1,
    -- Of its files; kept beside them so that a list need not read them.
    file_count    {int}  NOT NULL DEFAULT 0,
    size          {int}  NOT NULL DEFAULT 0,
    finding_count {int}  NOT NULL DEFAULT 0,
    install_count {int}  NOT NULL DEFAULT 0,
    is_active     {int}  NOT NULL DEFAULT 1,
    created_at    {int}  NOT NULL,
    updated_at    {int}  NOT NULL,
    deleted_at    {int}
);
CREATE INDEX marketplace_item_name ON marketplace_item (name, id) WHERE deleted_at IS NULL;

CREATE TABLE marketplace_file (
    item_id  {text} NOT NULL REFERENCES marketplace_item (id),
    -- config (below the instance's state folder) or workspace.
    scope    {text} NOT NULL,
    path     {text} NOT NULL,
    content  {text} NOT NULL,
    -- Bytes of the content.
    size     {int}  NOT NULL,
    -- What looked dangerous when it was uploaded: a JSON array.
    findings {text} NOT NULL,
    PRIMARY KEY (item_id, scope, path)
);

-- What is, or shall be, on an instance. A record that was removed stays, as history.
CREATE TABLE install (
    id            {text} NOT NULL PRIMARY KEY,
    item_id       {text} NOT NULL REFERENCES marketplace_item (id),
    item_version  {text} NOT NULL,
    item_revision {int}  NOT NULL,
    instance_id   {text} NOT NULL REFERENCES instance (id),
    user_id       {text} NOT NULL REFERENCES users (id),
    -- The task that brings the instance to this state; tasks are forgotten earlier than this record.
    task_id       {text} NOT NULL,
    state         {text} NOT NULL,
    error         {text} NOT NULL DEFAULT '',
    -- Every file that may be on the instance because of it: a JSON array of scope and path.
    files         {text} NOT NULL,
    created_at    {int}  NOT NULL,
    updated_at    {int}  NOT NULL,
    -- When it was on the instance for the first time: it counts once.
    installed_at  {int},
    removed_at    {int}
);
CREATE UNIQUE INDEX install_live ON install (instance_id, item_id) WHERE removed_at IS NULL;
CREATE INDEX install_item ON install (item_id);
