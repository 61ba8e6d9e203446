import { server as hapiServer } from '@hapi/hapi';
import t from 'tap';
import { withStrategy } from '../../plugins/route-authorization.ts';

const MESSAGE = 'the option auth must name a strategy';
const route = (auth: string | false) => ({ method: 'GET', path: '/keys', options: { auth }, handler: () => '' }) as const;

t.test('says of an unknown strategy which option named it', async (t) => {
    const server = hapiServer();
    t.throws(() => withStrategy(MESSAGE, () => server.route(route('nobody'))), { code: 'MISCONFIGURED', field: 'auth', message: MESSAGE });
});

t.test('leaves what else is wrong with a route to hapi', async (t) => {
    const server = hapiServer();
    server.route(route(false));
    t.throws(() => withStrategy(MESSAGE, () => server.route(route(false))), { message: /conflicts with existing/ });
});
