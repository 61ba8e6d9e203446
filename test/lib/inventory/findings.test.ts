import fc from 'fast-check';
import t from 'tap';
import { referencesOf, withReferences } from '../../../lib/inventory/findings.ts';
import { normaliseHost } from '../../../lib/inventory/host-input.ts';

const address = '192.0.2.1';
const services = [{ port: 443 }];

t.test('takes notes and vulnerabilities of a host and of its services', async (t) => {
    const host = normaliseHost({
        address,
        services,
        notes: [
            { id: 1, workspace_id: 1, host_id: 1, service_id: null, created_at: 'x', updated_at: 'x', data: { deep: [{}] } },
            { port: 443, ntype: 'x', data: {}, critical: true, seen: null },
        ],
        vulns: [
            { name: 'a', refs: ['CVE-2026-0001', ' URL-https://a b ', 'CVE-2026-0001'] },
            { port: 443, proto: 'tcp', name: 'b', info: 'c', exploited_at: '2026-11-21T09:30:00Z', vuln_detail_count: 1 },
        ],
    });
    t.strictSame(host.notes, [
        { ntype: null, data: { deep: [{}] } },
        { port: 443, proto: 'tcp', ntype: 'x', data: {}, critical: true, seen: null },
    ]);
    t.strictSame(host.vulns, [
        { name: 'a', info: 'References: CVE-2026-0001 URL-https://a%20b' },
        { port: 443, proto: 'tcp', name: 'b', info: 'c', exploited_at: new Date('2026-11-21T09:30:00Z'), vuln_detail_count: 1 },
    ]);
});

t.test('refuses what cannot be stored or is about nothing, and names it', async (t) => {
    const deep = (levels: number): object => (levels === 0 ? {} : { deeper: deep(levels - 1) });
    const cases: [object, string][] = [
        [{ notes: [{ data: {}, port: 80 }] }, 'notes[0].port'],
        [{ vulns: [{ name: 'x', port: 443, proto: 'udp' }] }, 'vulns[0].port'],
        [{ notes: [{ data: {}, port: 0 }] }, 'notes[0].port'],
        [{ notes: [{ data: [] }] }, 'notes[0].data'],
        [{ notes: [{}] }, 'notes[0].data'],
        [{ notes: [{ data: { a: 'x\0' } }] }, 'notes[0].data'],
        [{ notes: [{ data: { '\ud800': 1 } }] }, 'notes[0].data'],
        [{ notes: [{ data: deep(65) }] }, 'notes[0].data'],
        [{ notes: [{ data: {}, ntype: '\0' }] }, 'notes[0].ntype'],
        [{ notes: [{ data: {}, other: 1 }] }, 'notes[0].other'],
        [{ vulns: [{ name: '' }] }, 'vulns[0].name'],
        [{ vulns: [{ name: 'x'.repeat(256) }] }, 'vulns[0].name'],
        [{ vulns: [{ name: 'x', vuln_detail_count: 2 ** 31 }] }, 'vulns[0].vuln_detail_count'],
        [{ vulns: [{ name: 'x', exploited_at: '-005000-01-01T00:00:00Z' }] }, 'vulns[0].exploited_at'],
        [{ vulns: [{ name: 'x', refs: [''] }] }, 'vulns[0].refs[0]'],
        [{ notes: Array.from({ length: 1001 }, () => ({ data: {} })) }, 'notes[1000]'],
        [{ vulns: Array.from({ length: 16_385 }, (_, index) => ({ name: `${index}` })) }, 'vulns'],
    ];
    for (const [more, field] of cases) {
        t.throws(() => normaliseHost({ address, services, ...more }), { code: 'INVALID_INPUT', field }, field);
    }
    t.doesNotThrow(() => normaliseHost({ address, notes: [{ data: { literal: '\\u0000', half: '\\\\ud800', deep: deep(60) } }] }));
});

t.test('takes all data that has no NUL and no half of a surrogate pair, and no other', async () => {
    const key = fc.string({ unit: 'grapheme' });
    fc.assert(
        fc.property(
            fc.dictionary(key, fc.oneof(key, fc.string({ unit: fc.constantFrom('\\', 'u', '0', 'd', '8', '\0', '\ud800') }))),
            (data) => {
                const text = [...Object.keys(data), ...Object.values(data)].join('\n');
                const isStorable = !text.includes('\0') && !/\p{Cs}/u.test(text);
                try {
                    normaliseHost({ address, notes: [{ data }] });
                    return isStorable;
                } catch {
                    return !isStorable;
                }
            },
        ),
        { numRuns: 2000 },
    );
});

t.test('writes references where they are found again', async (t) => {
    t.equal(withReferences(null, []), null);
    t.strictSame(referencesOf({ name: 'Heartbleed', info: withReferences('cve-2014-0160 it is', ['BID-66690', 'URL-https://a/?b=c']) }), [
        'CVE-2014-0160',
        'BID-66690',
        'URL-https://a/?b=c',
    ]);
    t.strictSame(referencesOf({ name: 'CVE-2026-0001', info: null }), ['CVE-2026-0001']);
});
