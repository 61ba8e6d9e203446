import { hostname, networkInterfaces } from 'node:os';

/** What this machine is called and where it is reached. */
export interface OwnHost {
    readonly name: string;
    /** As the system writes them. */
    readonly addresses: readonly string[];
}

/** This machine, now. */
export function ownHost(): OwnHost {
    const interfaces = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
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
