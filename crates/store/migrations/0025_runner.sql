-- oldest: 11
-- What starts an instance on its server. An adopted one may be run by something else than a unit of the system.
ALTER TABLE instance ADD COLUMN runner {text} NOT NULL DEFAULT 'unit';
UPDATE instance SET runner = 'container' WHERE container_id <> '';

-- Where an adopted instance was before it was moved into a cell. What is there stays as it was, so that it can be moved back.
CREATE TABLE moved_from (
    instance_id  {text} NOT NULL PRIMARY KEY REFERENCES instance (id),
    -- The task that moved it: its copy of the state is named after it.
    task_id      {text} NOT NULL,
    -- How far the move, or the way back, has come: stopping, moved, back or ended.
    state        {text} NOT NULL,
    -- Whose it was. Nobody else gets what is there.
    user_id      {text},
    runner       {text} NOT NULL,
    home         {text} NOT NULL,
    unit         {text} NOT NULL DEFAULT '',
    -- Whether its unit started with the server.
    is_enabled   {int}  NOT NULL DEFAULT 0,
    isolation    {text} NOT NULL,
    runs_as      {text} NOT NULL,
    version      {text} NOT NULL,
    config_hash  {text} NOT NULL DEFAULT '',
    own_llm      {int}  NOT NULL DEFAULT 0,
    moved_at     {int}  NOT NULL
);
