// Builds the admin app; in development the API comes from a running binary's listener.
import { app } from '../vite.app.ts';

export default app(import.meta.dirname, 'http://127.0.0.1:8081', 2 * 1024);
