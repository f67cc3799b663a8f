-- oldest: 11
-- What an administrator expects a server to show: a public key, its fingerprint, or an authority that certifies it. Empty: whatever it
-- shows at the first contact is taken.
ALTER TABLE server ADD COLUMN expected_host_key {text} NOT NULL DEFAULT '';
