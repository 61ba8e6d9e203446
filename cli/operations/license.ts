import type { LicenseStatus } from '../../lib/license/inspect-license.ts';
import { type Operation, operation } from './operation.ts';

export const showLicense: Operation<object, LicenseStatus> = operation({
    name: 'license.show',
    method: 'GET',
    path: '/license',
    run: (system) => system.license.inspect(),
});

export const installLicense: Operation<{ text: string }, LicenseStatus> = operation({
    name: 'license.install',
    method: 'POST',
    path: '/license',
    creates: true,
    run: (system, { text }) => system.license.install(text),
});
