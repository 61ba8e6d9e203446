/** How a test runner is told of one law: `tap`, `node:test` and vitest all have a function that fits. */
export type ContractTest = (name: string, fn: () => Promise<void>) => unknown;

/** What every fixture has; `create` makes a fresh one, isolated from all others, for each law. */
export interface ContractFixture {
    stop(): Promise<void>;
}

export type Laws<Fixture> = Readonly<Record<string, (fixture: Fixture) => Promise<void>>>;

/** Announces each law as a test with a fixture of its own, which is stopped whatever happens. */
export function announce<Fixture extends ContractFixture>(
    test: ContractTest,
    create: () => Fixture | Promise<Fixture>,
    laws: Laws<Fixture>,
): void {
    for (const [name, law] of Object.entries(laws)) {
        test(name, async () => {
            const fixture = await create();
            try {
                await law(fixture);
            } finally {
                await fixture.stop();
            }
        });
    }
}
