import type { ContractTest } from '../../../adapters/contract/contract-test.ts';

export type Law = () => Promise<void>;

/** The laws that a contract announces, by name, without running them. */
export function lawsOf<Fixture>(
    contract: (test: ContractTest, create: () => Fixture) => void,
    create: () => Fixture,
): ReadonlyMap<string, Law> {
    const laws = new Map<string, Law>();
    contract((name, law) => laws.set(name, law), create);
    return laws;
}
