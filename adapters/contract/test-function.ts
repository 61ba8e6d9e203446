/** Registers a test, as `test(name, run)` of `node:test` or `t.test(name, run)` of tap do. */
export type TestFunction = (name: string, run: () => Promise<void>) => unknown;
