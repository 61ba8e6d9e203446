import assert from 'node:assert/strict';

/** Registers a test with a test runner: `tap`, `node:test` and vitest all have a function that fits. */
export type ContractTest = (name: string, run: () => Promise<void>) => unknown;

/**
 * What every fixture may have. A fresh fixture is made for each law, and one more at registration, which is never started: only
 * the abilities that its store says it has are looked at. So what waits or opens something belongs into `start`.
 */
export interface ContractFixture {
    /** Brings what the store keeps to its beginning, before the law. */
    start?(): Promise<void>;
    /** Frees what the fixture holds, also after a law that failed. */
    stop?(): Promise<void>;
}

/** What every implementation does, by name. */
export type Laws<Fixture> = Readonly<Record<string, (fixture: Fixture) => Promise<void>>>;

/** Something that not every store can do, or that cannot be seen without help from the fixture. */
export interface Ability<Fixture> {
    /** Whether the store says, by the data on it, that it has the ability. */
    has(fixture: Fixture): boolean;
    /** Whether the fixture supplies what it takes to put the ability to the test. */
    shows(fixture: Fixture): boolean;
    /** What that is, as it goes on in `the fixture must supply ...`. */
    readonly supply: string;
}

/** Laws for the stores that have all abilities of `needs`, or, with `lacks`, for those that do not have that one. */
export interface LawGroup<Fixture, Name extends string> {
    readonly needs?: readonly Name[];
    readonly lacks?: Name;
    readonly laws: Laws<Fixture>;
}

/** Laws of one interface. `Subject` is the fixture with everything that any ability takes; a law uses what its group needs. */
export interface Suite<Fixture, Subject extends Fixture, Name extends string> {
    readonly abilities: Readonly<Record<Name, Ability<Fixture>>>;
    readonly groups: readonly LawGroup<Subject, Name>[];
}

/**
 * Registers the laws that hold for this store, each as a test with a fixture of its own. The data on the store decides which
 * laws these are. An ability that the store has and the fixture cannot show makes its laws fail: none passes by not running.
 *
 * @throws TypeError when `create` answers with a promise.
 */
export function registerSuite<Fixture extends ContractFixture, Subject extends Fixture, Name extends string>(
    test: ContractTest,
    create: () => Fixture,
    { abilities, groups }: Suite<Fixture, Subject, Name>,
): void {
    const sample = create();
    if (sample instanceof Promise) {
        throw new TypeError('create() must return the fixture itself; what has to wait belongs into its start()');
    }

    const has = (name: Name): boolean => abilities[name].has(sample);
    for (const { needs = [], lacks, laws } of groups) {
        if (needs.every(has) && (lacks === undefined || !has(lacks))) {
            const hidden = needs.filter((name) => !abilities[name].shows(sample));
            const supply = hidden.map((name) => `${abilities[name].supply} (${name})`).join(' and ');
            registerLaws<Subject>(test, create as () => Subject, supply === '' ? laws : failing(laws, supply));
        }
    }
}

/** Registers laws that hold for every store. */
export function registerLaws<Fixture extends ContractFixture>(
    test: ContractTest,
    create: () => Fixture | Promise<Fixture>,
    laws: Laws<Fixture>,
): void {
    for (const [name, law] of Object.entries(laws)) {
        test(name, async () => {
            const fixture = await create();
            try {
                await fixture.start?.();
                await law(fixture);
            } finally {
                await fixture.stop?.();
            }
        });
    }
}

function failing<Fixture>(laws: Laws<Fixture>, supply: string): Laws<Fixture> {
    const law = async (): Promise<void> => assert.fail(`Cannot put the law to the test: the fixture must supply ${supply}`);
    return Object.fromEntries(Object.keys(laws).map((name) => [name, law]));
}
