-- oldest: 11
-- Which department a user belonged to, and since when. The first one of a user counts for all the time before it too.
CREATE TABLE user_department (
    user_id    {text} NOT NULL,
    since      {int}  NOT NULL,
    department {text} NOT NULL,
    PRIMARY KEY (user_id, since)
);
INSERT INTO user_department (user_id, since, department) SELECT id, {now}, department FROM users;
