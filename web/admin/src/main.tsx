// Starts the administration console.
import { startApp } from '@tidepool/shared/app';
import { appRoutes } from '@tidepool/shared/shell/routes';
import '@tidepool/shared/styles.css';
import { account, session } from './api';
import { dictionaries } from './messages';

const routes = () =>
  appRoutes({
    session,
    login: () => import('./pages/login'),
    frame: () => import('./frame'),
    pages: {
      '/': () => import('./pages/overview'),
      '/instances': () => import('./pages/instances'),
      '/servers': () => import('./pages/servers'),
      '/servers/:id': () => import('./pages/server'),
      '/users': () => import('./pages/users'),
      '/professions': () => import('./pages/professions'),
      '/keys': () => import('./pages/keys'),
      '/marketplace': () => import('./pages/marketplace'),
      '/usage': () => import('./pages/usage'),
      '/requests': () => import('./pages/requests'),
      '/requests/:id': () => import('./pages/request'),
      '/audit': () => import('./pages/audit'),
      '/tasks': () => import('./pages/tasks'),
      '/jobs': () => import('./pages/jobs'),
      '/guardian': () => import('./pages/guardian'),
      '/settings': () => import('./pages/settings'),
      '/profile': () => import('./pages/profile'),
    },
  });

void startApp({ session, account, dictionaries, routes });
