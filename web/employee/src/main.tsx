// Starts the employee app.
import { startApp } from '@tidepool/shared/app';
import { appRoutes } from '@tidepool/shared/shell/routes';
import '@tidepool/shared/styles.css';
import { account, session } from './api';
import { forgetUnfinished } from './chat/engine/unfinished';
import { forgetThreads } from './chat/local-threads';
import { dictionaries } from './messages';

const routes = () =>
  appRoutes({
    session,
    login: () => import('./pages/login'),
    frame: () => import('./frame'),
    pages: {
      '/': () => import('./pages/chat'),
      '/usage': () => import('./pages/usage'),
      '/professions': () => import('./pages/professions'),
      '/marketplace': () => import('./pages/marketplace'),
      '/assistant': () => import('./pages/assistant'),
      '/history': () => import('./pages/history'),
      '/profile': () => import('./pages/profile'),
    },
  });

// Who signs out leaves nothing of their chats on this machine; a session that merely ended finds its drafts again.
session.subscribe(() => {
  if (session.state().endReason !== 'signed-out') return;
  forgetThreads();
  forgetUnfinished();
});

void startApp({ session, account, dictionaries, routes });
