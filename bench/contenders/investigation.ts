import { randomUUID } from 'node:crypto';

/** An investigation of about 1.2 kB. */
export function investigation(id: string = randomUUID()): Record<string, unknown> {
    return {
        timestamp: '2026-11-21T09:30:00.000Z',
        title: 'Suspicious sign-in from a new country',
        description: 'A user signed in from a country that none of the sign-ins of the last ninety days came from. '.repeat(4),
        link: `https://console.example.com/investigations/${id}`,
        investigationId: id,
        investigationRrn: `rrn:investigation:eu:0f2b:investigation:${id}`,
        actors: {
            users: [
                {
                    name: 'Ann Example',
                    distinguishedName: 'CN=Ann Example,OU=People,DC=example,DC=com',
                    link: 'https://console.example.com/users/1',
                    emails: 'ann@example.com',
                },
            ],
            assets: [
                { hostname: 'db1.example.com', fqdn: 'db1.example.com', shortname: 'db1', link: 'https://console.example.com/assets/1' },
            ],
        },
    };
}
