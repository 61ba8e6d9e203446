import { server as hapiServer } from '@hapi/hapi';
import t from 'tap';
import { withStrategy } from '../../plugins/route-authorization.ts';

const MESSAGE = 'the option auth must name a strategy';
const route = (auth: string | false) => ({ method: 'GET', path: '/keys', options: { auth }, handler: () => '' }) as const;

t.test('says of an unknown strategy which option named it', async (t) => {
    const server = hapiServer();
    t.throws(() => withStrategy(MESSAGE, 'x options: path', () => server.route(route('nobody'))), {
        code: 'MISCONFIGURED',
        field: 'auth',
        message: MESSAGE,
    });
});

t.test('says of a path that is taken which option led there, and leaves what else is wrong as it is', async (t) => {
    const server = hapiServer();
    server.route(route(false));
    t.throws(() => withStrategy(MESSAGE, 'x options: path', () => server.route(route(false))), {
        code: 'MISCONFIGURED',
        field: 'path',
        message: 'x options: path must lead to paths that no other route of the server has: /keys is taken',
    });
    const broken = (): never => {
        throw new TypeError('broken');
    };
    t.throws(() => withStrategy(MESSAGE, 'x options: path', broken), { name: 'TypeError', message: 'broken' });
});
