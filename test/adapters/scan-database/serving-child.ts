/* Serves the scan database of its argument, and says what memory it takes when it is asked. */
import Hapi from '@hapi/hapi';
import { openScanDatabase } from '../../../adapters/scan-database/index.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import { plugin as restApiV2 } from '../../../plugins/rest-api-v2/index.ts';

const { inventory, close } = await openScanDatabase({ connectionString: process.argv[2] ?? '' });
const server = Hapi.server({ host: '127.0.0.1', port: 0 });
await server.register({ plugin: restApiV2, options: { store: inventory, license: alwaysLicensed(), auth: false } });
await server.start();
process.on('message', () => process.send?.(process.memoryUsage().rss));
process.on('disconnect', async () => {
    await server.stop();
    await close();
});
process.send?.(server.info.uri);
