import t from 'tap';
import { diskFinding } from '../../cli/disk-finding.ts';

const MIB = 2 ** 20;

t.test('says what a nearly full disk is, and what is worth a warning', async (t) => {
    for (const [mebibytes, state, text] of [
        [2048, 'ok', '2.0 GiB are free at /data'],
        [2047, 'warning', '2.0 GiB are free at /data'],
        [256, 'warning', '0.3 GiB are free at /data'],
        [255, 'wrong', '0.2 GiB are free at /data'],
        [0, 'wrong', '0.0 GiB are free at /data'],
    ] as const) {
        const finding = await diskFinding('/data', async () => ({ bavail: mebibytes * 256, bsize: MIB / 256 }));
        t.match(finding, { part: 'disk', state, text, advice: state === 'ok' ? null : /^Make room/ }, `${mebibytes} MiB`);
    }
});
