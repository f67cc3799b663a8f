// Makes the engine of a kind for an instance; nothing is connected before it is started.
import type { Instance } from '../../instances-query';
import { localThreads } from '../local-threads';
import { diagnose, dialDirect, dialRelay, directUrl } from './dial';
import { EmbeddedWindow } from './embed';
import { gatewayApi } from './gateway-api';
import { GatewayChat } from './gateway-chat';
import { GatewaySocket } from './gateway-socket';
import type { Hop, ChatEngine, EngineEvents, EngineKind } from './types';

type Where = Pick<Instance, 'id' | 'gateway_url' | 'gateway_token'>;

export function makeEngine(
  kind: EngineKind,
  account: string,
  instance: Where,
  events: EngineEvents,
  undelivered: readonly string[],
): ChatEngine {
  switch (kind) {
    case 'gateway':
      return new GatewayChat(gatewayApi(instance.id), localThreads(account, instance.id), events, [
        ...undelivered,
      ]);
    case 'embed':
      return new EmbeddedWindow(instance.id, events);
    case 'socket':
      return socket(instance, events);
  }
}

/** A server that has no relay is asked for one once per page. */
let relayOffered = true;

function socket(instance: Where, events: EngineEvents): ChatEngine {
  const direct = directUrl(instance.gateway_url);
  let straight = direct !== null;
  return new GatewaySocket(
    {
      dial: () =>
        straight && direct !== null
          ? Promise.resolve(dialDirect(direct, instance.gateway_token))
          : dialRelay(instance.id, relayOffered),
      open: (url) => new WebSocket(url),
      diagnose: (url) => {
        if (!straight) return diagnose(url);
        // The browser does not reach the gateway itself: the platform does.
        straight = false;
        return Promise.resolve<Hop>('server');
      },
    },
    {
      ...events,
      onUnusable: (hop, unsent) => {
        if (hop === 'no-relay') relayOffered = false;
        events.onUnusable(hop, unsent);
      },
    },
  );
}
