// Starts the employee app.
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
      '/': () => import('./pages/home'),
      '/profile': () => import('./pages/profile'),
    },
  });

void startApp({ session, account, dictionaries, routes });
