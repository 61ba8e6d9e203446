import fc from 'fast-check';

const valid = {
    data: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('base64')),
    host: fc.oneof(fc.domain(), fc.ipV4(), fc.ipV6()),
    ip: fc.oneof(fc.ipV4(), fc.ipV6()),
    port: fc.integer({ min: 1, max: 65535 }),
    path: fc.webPath().map((path) => `/${path}`),
    vhost: fc.string(),
    subject: fc.record({ OU: fc.string(), CN: fc.string() }, { requiredKeys: [] }),
};

/** Records that keep every rule. */
export const arbitraryRecord: fc.Arbitrary<Record<string, unknown>> = fc.record(valid, {
    requiredKeys: ['data', 'host', 'ip', 'port'],
});

const almostAddress = fc
    .tuple(
        fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain()),
        fc.constantFrom('', '.', ':', '::', '0', '%eth0', '/8', '[', ' ', '\n', '-'),
        fc.nat(40),
    )
    .map(([text, extra, at]) => text.slice(0, at) + extra + text.slice(at));
const anything = fc.oneof(
    almostAddress,
    fc.string({ unit: 'binary' }),
    fc.jsonValue(),
    fc.constantFrom('', '/', 'AA=', 'AA==', 'AAA=', 'A-_=', 'AAAA\n', 0, 65536, 443.5, '443', null, {}, [], { CN: 1 }, { CN: '', O: 'x' }),
);

/** Records with up to three fields replaced, removed or added. */
export const arbitraryMutant: fc.Arbitrary<Record<string, unknown>> = fc
    .tuple(
        arbitraryRecord,
        fc.array(fc.tuple(fc.constantFrom(...Object.keys(valid), 'extra', '__proto__'), fc.option(anything)), { maxLength: 3 }),
    )
    .map(([record, changes]) => {
        const mutant = new Map<string, unknown>(Object.entries(record));
        for (const [key, value] of changes) {
            value === null ? mutant.delete(key) : mutant.set(key, value);
        }

        // Through JSON, as records arrive, so that `__proto__` is a key like any other.
        const members = Array.from(mutant, ([key, value]) => `${JSON.stringify(key)}:${JSON.stringify(value)}`);
        return JSON.parse(`{${members.join(',')}}`) as Record<string, unknown>;
    });
