//! What needs the real OpenClaw, or an older release of our own, and too much time or space for every run: `make test-real`.

mod adopt;
mod bot;
mod browser;
mod cell_cost;
mod gateway;
mod hostile;
mod neighbour;
mod openclaw;
mod protocols;
mod rolling;
mod rules;
mod stranger;
mod tools;
mod upgrade;
mod upstream;
