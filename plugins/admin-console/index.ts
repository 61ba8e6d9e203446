import type { NamedPlugin, Server } from '@hapi/hapi';
import { ScanwireError } from '../../lib/errors.ts';
import { checked } from '../../lib/schema-validation.ts';
import { VERSION } from '../../lib/version.ts';
import { claimInstance } from '../instance.ts';
import { acceptsApiKeys, withStrategy } from '../route-authorization.ts';
import { type AdminConsoleOptions, optionsSchema } from './options.ts';
import { adminRoutes } from './routes.ts';

export { type AuditEntry, type AuditStore, type AuditTrail, type AuditTrailOptions, auditTrail } from '../../lib/audit/audit-trail.ts';
export { ScanwireError, type ScanwireErrorCode } from '../../lib/errors.ts';
export { type ErrorDetails, toBoom } from '../errors.ts';
export { redact } from '../log-and-events.ts';
export type { AttemptView, DeliveryView, Input, OperationName, Operations, Output, TestedExporter, TestView } from './operations.ts';
export type { AdminConsoleOptions, ScreenOptions } from './options.ts';
export type { Forms, Texts } from './screens/languages.ts';
export { texts } from './screens/texts.ts';
export type { HostSystem, InstalledLicense, System } from './system.ts';

/** Registers the routes by which people and programs administer a system, behind the application's own authentication. */
export const plugin: NamedPlugin<AdminConsoleOptions> = {
    name: 'admin-console',
    version: VERSION,
    requirements: { hapi: '>=21', node: '>=20.19' },
    multiple: true,

    async register(server, options) {
        const settings = checked(optionsSchema, options, { subject: 'admin-console options', code: 'MISCONFIGURED' });
        claimInstance(server, 'admin-console', settings);
        assertMoreThanKey(server, settings.auth);
        const { routes = true, screens } = settings;
        // Loaded here: whoever has none pays nothing.
        const pages = screens === undefined ? null : await import('./screens/index.ts');
        const unknown = 'admin-console options: auth must name a strategy of the server, registered before';
        if (routes) {
            withStrategy(unknown, 'admin-console options: prefix', () => server.route(adminRoutes(settings)));
        }
        if (screens !== undefined) {
            withStrategy(unknown, 'admin-console options: screens.prefix', () => pages?.addScreens(server, { ...settings, screens }));
        }
    },
};

/** Whoever may read the inventory with a key must not make keys with it. */
function assertMoreThanKey(server: Server, auth: string | false): void {
    if (auth !== false && acceptsApiKeys(server, auth)) {
        throw new ScanwireError(
            'MISCONFIGURED',
            'admin-console options: auth must not name a strategy of token-auth: a key of the REST API is never enough here',
            { field: 'auth' },
        );
    }
}
