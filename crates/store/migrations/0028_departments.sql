-- oldest: 11
-- Which department a user belonged to, and from when on. `since` 0 is from the beginning, so every user has a department at any time.
CREATE TABLE user_department (
    user_id    {text} NOT NULL,
    since      {int}  NOT NULL,
    department {text} NOT NULL,
    PRIMARY KEY (user_id, since)
);
INSERT INTO user_department (user_id, since, department) SELECT id, 0, department FROM users;

-- Changes of departments are recorded from now on. Older requests count to the department of today.
INSERT INTO setting (name, value) VALUES ('departments_since', CAST({now} AS {text}));
