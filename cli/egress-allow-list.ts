import { egressGuard } from '../lib/egress/egress-guard.ts';
import { ScanwireError } from '../lib/scanwire-error.ts';

const EGRESS_ALLOW = 'SCANWIRE_EGRESS_ALLOW';

/**
 * What `SCANWIRE_EGRESS_ALLOW` opens: CIDR blocks, addresses and host names, with commas between them.
 *
 * @throws ScanwireError `MISCONFIGURED` that names the variable and the entry.
 */
export function egressAllowList(environment: NodeJS.ProcessEnv): readonly string[] {
    const allow = (environment[EGRESS_ALLOW] ?? '')
        .split(',')
        .map((entry) => entry.trim())
        .filter((entry) => entry !== '');
    try {
        egressGuard({ allow });
    } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        throw new ScanwireError('MISCONFIGURED', `${EGRESS_ALLOW}: ${reason}`, { field: EGRESS_ALLOW, cause: error });
    }

    return allow;
}
