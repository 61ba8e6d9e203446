import t from 'tap';
import { KNOWN_ARCHES, normaliseArch } from '../../../lib/inventory/arch.ts';

t.test('knows twenty values', async (t) => {
    t.equal(KNOWN_ARCHES.size, 20);
    for (const arch of KNOWN_ARCHES) {
        t.strictSame(normaliseArch({ arch, detected_arch: 'x' }), { arch, detected_arch: 'x' });
    }
});

t.test('keeps the text of any other in detected_arch', async (t) => {
    for (const arch of ['riscv64', 'X86', ' x64', 'unknown']) {
        t.strictSame(normaliseArch({ arch, detected_arch: 'x' }), { arch: 'Unknown', detected_arch: arch });
    }
});

t.test('leaves an arch alone that is not given', async (t) => {
    t.strictSame(normaliseArch({}), {});
    t.strictSame(normaliseArch({ arch: null, detected_arch: 'x' }), { arch: null, detected_arch: 'x' });
});
