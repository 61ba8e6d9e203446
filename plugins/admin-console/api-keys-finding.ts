import { ScanwireError } from '../../lib/errors.ts';
import { type Doctor, diagnosis } from '../../lib/webhooks/observing/doctor.ts';
import { type Finding, found } from '../../lib/webhooks/observing/finding.ts';
import type { System } from './system.ts';

/** A doctor who looks at API keys as well, next to the key ring; if that was not looked at, for want of a store, not at them either. */
export function withApiKeys(doctor: Doctor, keys: Pick<System['keys'], 'list'> | undefined): Doctor {
    return async (exporterId) => {
        const looked = await doctor(exporterId);
        const ring = looked.findings.findIndex(({ part }) => part === 'keys');
        return keys === undefined || ring === -1 ? looked : diagnosis(looked.findings.toSpliced(ring + 1, 0, await apiKeysFinding(keys)));
    };
}

/** How many API keys there are. To have none is no fault, since webhooks need none; that all have expired need not be meant. */
async function apiKeysFinding({ list }: Pick<System['keys'], 'list'>): Promise<Finding> {
    try {
        const kept = (await list()).filter(({ revokedAt }) => revokedAt === null);
        const expired = kept.filter((key) => key.expired).length;
        const usable = kept.length - expired;
        if (kept.length === 0) {
            return found('api keys', 'ok', 'api_keys_none');
        }
        return usable === 0
            ? found('api keys', 'warning', 'api_keys_expired', [String(expired)])
            : found('api keys', 'ok', 'api_keys_counted', [String(usable), String(expired)]);
    } catch (error) {
        if (!(error instanceof ScanwireError)) {
            throw error;
        }
        return found('api keys', 'wrong', 'api_keys_unknown', [error.message]);
    }
}
