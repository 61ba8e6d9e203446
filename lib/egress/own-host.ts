import { hostname, type NetworkInterfaceInfo, networkInterfaces } from 'node:os';
import { processWarning } from '../process-warning.ts';

/** What this machine is called and where it is reached. */
export interface OwnHost {
    readonly name: string;
    /** As the system writes them. */
    readonly addresses: readonly string[];
}

let isTold = false;

/** None where the system does not tell, as without the right to ask the kernel for them: that keeps nobody from calling others. */
function knownInterfaces(): readonly NetworkInterfaceInfo[] {
    try {
        return Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
    } catch (error) {
        if (!isTold) {
            isTold = true;
            processWarning(`The addresses of this host are not known, and so not closed to receivers: ${(error as Error).message}`);
        }
        return [];
    }
}

/** This machine, now. */
export function ownHost(): OwnHost {
    const interfaces = knownInterfaces();
    return { name: hostname(), addresses: interfaces.filter(({ internal }) => !internal).map(({ address }) => address) };
}

/** A host of containers has thousands of interfaces, and each new connection asks for its own addresses. Milliseconds. */
const KEPT_FOR = 1_000;

let kept: { readonly addresses: readonly string[]; readonly at: number } | null = null;

/** The addresses of this machine, which may change while it runs: those of a moment ago. */
export function ownAddresses(): readonly string[] {
    const now = performance.now();
    if (kept === null || now - kept.at > KEPT_FOR) {
        kept = { addresses: ownHost().addresses, at: now };
    }

    return kept.addresses;
}
