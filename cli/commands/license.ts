import type { Command } from 'commander';
import type { LicenseStatus } from '../../lib/license/verify-license.ts';
import { type Answer, command } from '../command.ts';
import { readText } from '../input-file.ts';
import { aligned, isoDay, relativeTime } from '../output/table.ts';

export function define(license: Command): void {
    command(license, 'show', 'show the installed licence', async ({ perform }) => {
        const status = await perform('showLicense', {});
        return { ...statusAnswer(status), failed: !status.valid };
    });

    command(license, 'install <file>', 'install a signed licence, - for stdin', async ({ args: [file = ''], perform }) => {
        const text = await readText(file);
        return statusAnswer(await perform('installLicense', { text }));
    });

    command(
        license,
        'trust <file>',
        'check licences with the public key in a PEM file, - for stdin',
        async ({ args: [file = ''], perform }) => {
            const text = await readText(file);
            return statusAnswer(await perform('trustLicense', { text }));
        },
    );
}

function statusAnswer(status: LicenseStatus): Answer {
    const now = new Date();
    const { holder, notBefore, expires, valid, reason } = status;
    return {
        json: status,
        text: () =>
            aligned([
                ['Licence', valid ? 'valid' : `not valid: ${reason}`],
                ['Holder', holder ?? 'unknown'],
                ['Begins', notBefore === null ? 'unknown' : `${isoDay(notBefore)} (${relativeTime(notBefore, now)})`],
                ['Expires', expires === null ? 'unknown' : `${isoDay(expires)} (${relativeTime(expires, now)})`],
            ]),
    };
}
