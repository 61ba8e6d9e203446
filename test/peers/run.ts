/*
 * `npm run peers`: the package beside every version of hapi and joi that its hosts may have, installed from the registry. Ends with 1 when
 * one of them does not fit. `-- --hapi 21.0.0 --joi 18.0.0` tries one.
 */
import { packed } from '../support/packed.ts';
import { scriptCommand } from '../support/script-command.ts';
import { hostWith, MATRIX } from './peers.ts';

const only = scriptCommand('peers', 'Tries the package beside every version of hapi and joi that its hosts may have.')
    .option('--hapi <version>', 'only beside this hapi')
    .option('--joi <version>', 'only beside this joi')
    .parse()
    .opts<{ hapi?: string; joi?: string }>();
const { folder, remove } = await packed();
let failed = 0;
for (const peers of MATRIX) {
    if ((only.hapi ?? peers.hapi) === peers.hapi && (only.joi ?? peers.joi) === peers.joi) {
        const name = `hapi ${peers.hapi}, joi ${peers.joi}`;
        try {
            const found = await hostWith(peers, folder);
            process.stdout.write(`ok   ${name}: hapi ${found.hapi}, joi ${found.joi}, ${found.status}${peers.types ? ', types' : ''}\n`);
        } catch (error) {
            failed += 1;
            process.stdout.write(`FAIL ${name}: ${(error as Error).message}\n`);
        }
    }
}

remove();
process.exit(failed === 0 ? 0 : 1);
