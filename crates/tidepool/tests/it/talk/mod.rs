//! Talking to an assistant live: the relay and its tickets, hostile browsers, sockets that end with their login, the embedded
//! window and bots. The assistant is simulated, on a real socket.

mod bots;
mod conversation;
mod devices;
mod embedded;
mod ending;
mod flood;
mod hostile;
mod neighbour;
mod pairing;
mod ticket;
