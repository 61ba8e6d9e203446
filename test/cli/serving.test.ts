import t from 'tap';
import { dataFolder } from '../../cli/data-folder.ts';
import { serving } from '../../cli/output/serving.ts';

t.test('says how to make a key in the folder that is served', async (t) => {
    const said = async (data: string): Promise<string> =>
        serving({
            json: false,
            uri: 'https://127.0.0.1:3790',
            folder: dataFolder(data),
            tls: { key: '', cert: '', selfSigned: null },
            license: null,
            scan: null,
            link: null,
            environment: {},
            demo: null,
        });
    t.match(await said('./scanwire-data'), /: scanwire keys create NAME\n/);
    t.match(await said('/srv/its data'), /: scanwire keys create NAME --data '\/srv\/its data'\n/);
});
