/** The environment variable's value. `npm test` sets what tests need; a test never passes for want of a server. */
export function required(name: 'DATABASE_URL' | 'REDIS_URL'): string {
    const value = process.env[name];
    if (value === undefined || value === '') {
        throw new Error(`Missing ${name}: run the tests by "npm test", or set it`);
    }

    return value;
}
