import type { Test } from 'tap';
import type { ContractTest } from '../../../adapters/contract/register-laws.ts';

export type Law = () => Promise<void>;
type Contract<Fixture> = (test: ContractTest, create: () => Fixture) => void;

/** The laws that a contract registers, by name, without running them. */
export function lawsOf<Fixture>(contract: Contract<Fixture>, create: () => Fixture): ReadonlyMap<string, Law> {
    const laws = new Map<string, Law>();
    contract((name, law) => laws.set(name, law), create);
    return laws;
}

/** The law of that name, which must be registered for the fixture. */
export function lawOf<Fixture>(contract: Contract<Fixture>, create: () => Fixture, name: string): Law {
    const law = lawsOf(contract, create).get(name);
    if (law === undefined) {
        throw new Error(`The law is not registered: ${name}`);
    }

    return law;
}

/**
 * Proves each law by a fixture in which one thing is wrong, its mutant: a law that its mutant passes is no law.
 *
 * @param laws The names of all laws to prove.
 * @param mutants By the name of the law that must catch it.
 * @param caught What the laws must fail with: an assertion, or what a database says to a wrong id, unless the mutant fails by itself.
 */
export function proveLaws<Fixture>(
    t: Test,
    contract: Contract<Fixture>,
    laws: readonly string[],
    mutants: Readonly<Record<string, () => Fixture>>,
    caught: { readonly code: RegExp } | RegExp = { code: /ERR_ASSERTION|22003|22P02/ },
): void {
    t.test('has a mutant for every law', async (t) => {
        t.same(Object.keys(mutants).sort(), laws.toSorted());
    });

    for (const [name, create] of Object.entries(mutants)) {
        t.test(`catches what breaks: ${name}`, async (t) => {
            await t.rejects(lawOf(contract, create, name)(), caught);
        });
    }
}

/** The values of an object, each made into another. */
export function mapValues<From, To>(values: Readonly<Record<string, From>>, change: (value: From) => To): Readonly<Record<string, To>> {
    return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value)]));
}
