/* A process that sends, as `scanwire worker` does; it asks the campaign's name server, which the command cannot be told. */
import { runEngine } from './engine.ts';

await runEngine({ role: 'worker' });
