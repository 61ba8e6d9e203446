import t from 'tap';
import { type Ran, scanwireEach } from '../support/scanwire.ts';
import { usedDataOf } from '../support/served.ts';

t.test('saves no URL that makes a command of an event, unless the deployment opened it', async (t) => {
    const data = await usedDataOf(t);
    const creating = (url: string, allow = '', ...more: string[]) => ({
        args: ['exporters', 'create', '--url', url, '--data', data, ...more],
        env: { SCANWIRE_EGRESS_ALLOW: allow },
    });
    const refused: [string, RegExp][] = [
        ['http://redis.example.com:6379/t0ken', /has port 6379, one of those for databases: \*:6379 in egress\.allow/],
        ['http://node.example.com:2375/containers/t0ken', /port 2375, one of those for orchestrators/],
        ['http://kubernetes.default.svc/t0ken', /a name of the cluster/],
        ['http://jenkins:8080/t0ken', /a name without a dot/],
    ];
    const ran = await scanwireEach([
        ...refused.map(([url]) => creating(url)),
        creating('http://jenkins:6379/t0ken#t0ken', 'jenkins,*:6379'),
        creating('http://jenkins:6379/t0ken', 'jenkins,*:6379', '--trust', 'all', '--json'),
    ]);
    const [opened, again] = ran.slice(refused.length) as [Ran, Ran];
    for (const [index, [url, message]] of refused.entries()) {
        const { code, stderr } = ran[index] as Ran;
        t.equal(code, 1, url);
        t.match(stderr, message);
        t.notMatch(stderr, 't0ken');
    }

    t.match(opened, { code: 0, stdout: /^Warning {5}Messages and header values go out unencrypted/m });
    t.match(opened.stdout, /^Warning {5}The fragment of the URL/m);
    t.notMatch(opened.stdout, 't0ken');

    t.match(JSON.parse(again.stdout), { warnings: [{ code: 'plain_http' }, { code: 'same_url' }, { code: 'trust_without_tls' }] });
});
