// Makes the data folder that it is told, as the first command of a deployment does, and ends.
import { dataFolder } from '../../cli/data-folder.ts';
import { withOwnSystem } from '../../cli/deployment.ts';

const [, , folder = ''] = process.argv;
const onError = (error: unknown): void => console.error(error);
await withOwnSystem({ folder: dataFolder(folder), environment: {}, onError }, false, async () => {});
