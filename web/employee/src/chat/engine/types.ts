// What every chat engine is to the page: a state to draw, things to ask of it, an end. The page never looks behind it.

export type EngineKind = 'socket' | 'embed' | 'gateway';

/** Where the way to the assistant is broken; each has its own words and its own remedy. */
export type Hop =
  | 'offline'
  | 'server'
  /** The relay heard nothing from this page for too long: it slept. */
  | 'silent'
  | 'no-upgrade'
  | 'origin'
  /** As many sockets are open as one person may have. */
  | 'crowded'
  | 'instance'
  | 'starting'
  | 'restarting'
  | 'no-embed'
  | 'session'
  | 'not-yours'
  | 'too-long'
  | 'refused';

export type Connection =
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'waiting'; retryAt: number; hop: Hop }
  | { state: 'readonly'; hop: Hop };

/** A failed request in words: the server's code decides the text, its message is the last resort. */
export interface Failure {
  code: string;
  msg: string;
}

/** It went out and nobody answered: it may have arrived. */
export const UNSURE: Failure = { code: 'unsure', msg: '' };
/** The way in use takes no files. */
export const NO_FILES = 'files';

export interface ToolCall {
  id: string;
  name: string;
  input: string;
  output: string;
  state: 'running' | 'done' | 'failed';
}

export interface Usage {
  prompt: number;
  completion: number;
  total: number;
  /** From the request log, a moment later; null until then. */
  cost: number | null;
  /** The requests that it took, where there were several. */
  calls?: readonly Omit<Usage, 'cost' | 'calls'>[];
}

export type MessageStatus =
  /** A prompt: waits for the connection, is on its way, was taken, or was not. */
  | 'queued'
  | 'sending'
  | 'sent'
  | 'failed'
  /** A reply: being written, whole, ended by its reader, or broken off. */
  | 'streaming'
  | 'done'
  | 'stopped'
  | 'broken';

/** What is known of a file that goes with a prompt, without what is in it. */
export interface FileFacts {
  name: string;
  /** Its media type; empty when the browser knows none. */
  type: string;
  size: number;
}

/** A file to send along; `content` is base64. */
export interface Attachment extends FileFacts {
  content: string;
}

/** What the assistant takes along with a prompt, in bytes. */
export interface AttachmentPolicy {
  maxBytes: number;
  maxImageBytes: number;
  /** Everything of one prompt together, as it is sent. */
  maxPayload: number;
}

export interface Message {
  id: string;
  role: 'user' | 'assistant';
  text: string;
  at: number;
  status: MessageStatus;
  /** The gateway's id of the run that wrote this reply: the same in every tab. */
  run?: string;
  files?: readonly FileFacts[];
  /** As far as it is written down it ends with the call of a tool: it is not whole. */
  calling?: boolean;
  /** What the assistant does before the first word. */
  phase?: string;
  failure?: Failure;
  reasoning?: string;
  tools?: readonly ToolCall[];
  usage?: Usage;
  latencyMs?: number;
  model?: string;
}

export interface Conversation {
  key: string;
  title: string;
  updatedAt: number;
  /** The assistant's first one, which nobody gave a name. */
  main?: boolean;
}

/** What stands before the first message of the thread. */
export type Older =
  /** It is known to be the first, or nobody asked. */
  | 'nothing'
  | 'more'
  | 'loading'
  | 'failed'
  /** All of it is here now. */
  | 'beginning'
  /** More than this engine can be asked for: the stored history has it. */
  | 'history';

export interface EngineState {
  connection: Connection;
  /** The thread is known, even if empty. */
  loaded: boolean;
  messages: readonly Message[];
  older: Older;
  conversations: readonly Conversation[];
  /** The open conversation's key; null is the assistant's first one. */
  conversation: string | null;
  /** The page to show in a frame; only the embedded window has one. */
  frame: string | null;
  /** What may be attached; null where nothing can be. */
  attachable: AttachmentPolicy | null;
}

/** What the page does beside the chat: the dual write hangs on these two moments. */
export interface EngineEvents {
  onPrompt: (message: Message, conversation: string | null) => void;
  onFinal: (message: Message, conversation: string | null) => void;
  /** The engine cannot do its work at all; another one may. */
  onUnusable: (hop: Hop) => void;
}

export interface ChatEngine {
  readonly kind: EngineKind;
  state: () => EngineState;
  subscribe: (listener: () => void) => () => void;
  start: () => void;
  /** Files only where the state says that they can be attached. */
  send: (text: string, files?: readonly Attachment[]) => void;
  /** Sends a failed or queued prompt once more. */
  retry: (id: string) => void;
  /** Ends the running reply; what has come stays. */
  stop: () => void;
  /** Asks the last prompt again. False where its files are not in this page any more: then nothing is sent. */
  regenerate: () => boolean;
  /** Replaces a prompt and everything after it. */
  edit: (id: string, text: string, files?: readonly Attachment[]) => void;
  /** Brings what stands before the first message; the state says how that goes. */
  loadOlder: () => void;
  newConversation: () => void;
  openConversation: (key: string | null) => void;
  /** Tries to connect at once instead of at the announced time. */
  reconnect: () => void;
  /** Ends connections and running work; the engine is not used again, except by another start. */
  destroy: () => void;
}

export const EMPTY: EngineState = {
  connection: { state: 'connecting' },
  loaded: false,
  messages: [],
  older: 'nothing',
  conversations: [],
  conversation: null,
  frame: null,
  attachable: null,
};

export function isRunning(state: EngineState): boolean {
  // What was written meanwhile stands after the reply that runs.
  return state.messages.some(({ status }) => status === 'streaming' || status === 'sending');
}
