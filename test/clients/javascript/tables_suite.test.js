// @azure/data-tables against a table service. The environment names the server: see ../case_report.py.
'use strict';

const assert = require('node:assert/strict');
const {randomUUID} = require('node:crypto');
const {after, before, describe, test} = require('node:test');
const {
  AzureNamedKeyCredential, AzureSASCredential, TableClient, TableServiceClient, TableTransaction,
  generateAccountSas, generateTableSas, odata,
} = require('@azure/data-tables');

const endpoint = process.env.TABLE_ENDPOINT ?? 'http://127.0.0.1:10002/devstoreaccount1';
const account = process.env.TABLE_ACCOUNT ?? 'devstoreaccount1';
// The key that everyone knows: table clients use it for local development.
const key = process.env.TABLE_KEY ??
  'Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==';
const credential = new AzureNamedKeyCredential(account, key);
// One attempt: what fails shall show, and not be tried until it works.
const options = {allowInsecureConnection: true, retryOptions: {maxRetries: 0}};

const service = new TableServiceClient(endpoint, credential, options);
const freshName = (word = 'j') => word + randomUUID().replaceAll('-', '').slice(0, 16);
const tableNamed = (name) => new TableClient(endpoint, name, credential, options);
const table = tableNamed(freshName());

// The code in an answer's body; the SDK passes it on in one of three places.
const codeOf = (error) => error.code ?? error.details?.odataError?.code ?? error.details?.errorCode;

async function refused(status, code, call) {
  await assert.rejects(call, (error) => {
    assert.equal(error.statusCode, status);
    if (code) assert.equal(codeOf(error), code);
    return true;
  });
}

async function collect(pages) {
  const all = [];
  for await (const one of pages) all.push(one);
  return all;
}

// A test whose name is the id that the other suites would print for it.
const check = (section, sentence, body) => test(`javascript ${section}: ${sentence}`, body);

describe('javascript', () => {
  before(() => table.createTable());
  after(() => table.deleteTable());

  describe('tables', () => {
    check('10.1', 'Creating a table that exists is taken for done, and the table is listed', async () => {
      await table.createTable();
      const names = (await collect(service.listTables())).map((t) => t.name);
      assert.ok(names.includes(table.tableName));
    });
    check('10.2', 'The collection of tables takes a filter and pages', async () => {
      const prefix = freshName('page');
      for (let i = 0; i < 5; i++) await service.createTable(prefix + i);
      const filter = odata`TableName ge ${prefix + '0'} and TableName lt ${prefix + '9'}`;
      const pages = await collect(service.listTables({queryOptions: {filter}}).byPage({maxPageSize: 2}));
      assert.deepEqual(pages.flatMap((p) => [...p]).map((t) => t.name), [0, 1, 2, 3, 4].map((i) => prefix + i));
      for (let i = 0; i < 5; i++) await service.deleteTable(prefix + i);
    });
    check('10.3', 'Deleting a missing table is taken for done', () => service.deleteTable(freshName('missing')));
    check('7.1', 'A table name with a forbidden character is 400 InvalidResourceName', async () => {
      await refused(400, 'InvalidResourceName', () => tableNamed('with-hyphen').createEntity({partitionKey: 'p', rowKey: 'r'}));
    });
  });

  describe('entities', () => {
    check('6', 'Every type comes back as it was sent', async () => {
      const sent = {
        partitionKey: 'types', rowKey: 'all', s: 'it\'s "quoted" \u{1f600}', i: -5, b: false, l: 2n ** 62n, d: 0.1,
        t: new Date('2024-05-06T07:08:09.123Z'), x: new Uint8Array([0, 1, 255]),
        g: {value: '6f9619ff-8b86-d011-b42d-00c04fc964ff', type: 'Guid'},
        whole: {value: '3.0', type: 'Double'}, n: null,
      };
      await table.createEntity(sent);
      const read = await table.getEntity('types', 'all');
      for (const name of ['s', 'i', 'b', 'l', 'd']) assert.equal(read[name], sent[name], name);
      assert.equal(read.t.toISOString(), sent.t.toISOString());
      assert.deepEqual([...read.x], [0, 1, 255]);
      assert.deepEqual(read.g, sent.g);
      assert.equal(read.whole, 3);
      assert.ok(!('n' in read));
    });
    check('6', 'Types are told when they are asked for, the Double that is whole among them', async () => {
      await table.createEntity({partitionKey: 'types', rowKey: 'told', d: {value: '3.0', type: 'Double'}, i: 3, l: 3n});
      const read = await table.getEntity('types', 'told', {disableTypeConversion: true});
      assert.equal(read.l.type, 'Int64');
      assert.deepEqual([read.i.type ?? 'Int32', String(read.i.value)], ['Int32', '3']);
    });
    check('6', 'A whole number beyond Int32 is stored as a Double', async () => {
      await table.createEntity({partitionKey: 'types', rowKey: 'big', big: 30000000000});
      assert.equal((await table.getEntity('types', 'big')).big, 30000000000);
    });
    check('10.4', 'Inserting twice is 409 EntityAlreadyExists', async () => {
      await table.createEntity({partitionKey: 'p', rowKey: 'twice'});
      await refused(409, 'EntityAlreadyExists', () => table.createEntity({partitionKey: 'p', rowKey: 'twice'}));
    });
    check('10.4', 'Inserting into a missing table is 404 TableNotFound', () => refused(
      404, 'TableNotFound', () => tableNamed(freshName('missing')).createEntity({partitionKey: 'p', rowKey: 'r'})));
    check('10.5', 'Merges keep, replaces drop, and both upserts create', async () => {
      const at = (rowKey, rest) => ({partitionKey: 'modes', rowKey, ...rest});
      for (const mode of ['Merge', 'Replace']) {
        await table.upsertEntity(at(mode, {a: 1}), mode);
        await table.updateEntity(at(mode, {b: 2}), mode);
        const read = await table.getEntity('modes', mode);
        assert.deepEqual([read.a, read.b], mode === 'Merge' ? [1, 2] : [undefined, 2]);
      }
      await refused(404, 'ResourceNotFound', () => table.updateEntity(at('nowhere', {}), 'Merge'));
    });
    check('10.5', 'A null in a merge leaves the stored value', async () => {
      await table.createEntity({partitionKey: 'p', rowKey: 'null', a: 1});
      await table.updateEntity({partitionKey: 'p', rowKey: 'null', a: null, b: 2}, 'Merge');
      const read = await table.getEntity('p', 'null');
      assert.deepEqual([read.a, read.b], [1, 2]);
    });
    check('10.6', 'Deleting a missing entity is 404 ResourceNotFound', () => refused(
      404, 'ResourceNotFound', () => table.deleteEntity('p', 'nowhere')));
    check('9.3', 'A stale tag is 412 UpdateConditionNotSatisfied, the current one is taken', async () => {
      const first = await table.createEntity({partitionKey: 'p', rowKey: 'tag', a: 1});
      const second = await table.updateEntity({partitionKey: 'p', rowKey: 'tag', a: 2}, 'Merge', {etag: first.etag});
      assert.notEqual(first.etag, second.etag);
      await refused(412, 'UpdateConditionNotSatisfied', () => table.updateEntity(
        {partitionKey: 'p', rowKey: 'tag', a: 3}, 'Replace', {etag: first.etag}));
      await refused(412, 'UpdateConditionNotSatisfied', () => table.deleteEntity('p', 'tag', {etag: first.etag}));
      assert.equal((await table.getEntity('p', 'tag')).etag, second.etag);
      await table.deleteEntity('p', 'tag', {etag: second.etag});
    });
    check('7.2', 'Keys with quotes, spaces, plus, percent, commas and emoji work', async () => {
      for (const k of ['it\'s', '\'\'', 'a b', 'a+b', '100%', '%2F', 'a,b', 'a)b(', 'ü日', '\u{1f600}', '&=;', ' ', '']) {
        await table.createEntity({partitionKey: k, rowKey: k, k});
        assert.equal((await table.getEntity(k, k)).k, k);
        await table.deleteEntity(k, k);
      }
    });
  });

  describe('queries', () => {
    before(async () => {
      for (let first = 0; first < 1100; first += 100) {
        await table.submitTransaction(Array.from({length: 100}, (_, i) => [
          'create', {partitionKey: 'query', rowKey: String(first + i).padStart(4, '0'), n: first + i, half: (first + i) / 2}]));
      }
    });
    const rows = async (filter, select) => collect(table.listEntities({queryOptions: {filter, select}}));

    check('11.7', 'All entities come, each once, across pages', async () => {
      const found = await rows(odata`PartitionKey eq ${'query'}`);
      assert.deepEqual(found.map((e) => e.n), Array.from({length: 1100}, (_, i) => i));
    });
    check('11.7', 'A page holds what was asked for, and its token resumes', async () => {
      const list = () => table.listEntities({queryOptions: {filter: odata`PartitionKey eq ${'query'}`}});
      const first = await list().byPage({maxPageSize: 10}).next();
      assert.equal(first.value.length, 10);
      const next = await list().byPage({maxPageSize: 5, continuationToken: first.value.continuationToken}).next();
      assert.deepEqual(next.value.map((e) => e.n), [10, 11, 12, 13, 14]);
    });
    check('11.3', 'Filters find by range, type and property', async () => {
      assert.equal((await rows(odata`PartitionKey eq ${'query'} and RowKey ge ${'0100'} and RowKey lt ${'0150'}`)).length, 50);
      assert.equal((await rows(odata`n eq ${7} and half eq ${3.5}`)).length, 1);
      assert.equal((await rows(`PartitionKey eq 'query' and (n lt 2 or n gt 1097) and not (n eq 0)`)).length, 3);
    });
    check('11.4', 'A selected property that is missing is null', async () => {
      const [one] = await rows(odata`PartitionKey eq ${'query'} and RowKey eq ${'0007'}`, ['n', 'nothing']);
      assert.deepEqual([one.n, one.nothing, one.half], [7, null, undefined]);
    });
    check('11.1', 'A filter that cannot be read is 400 InvalidInput', () => refused(
      400, 'InvalidInput', () => rows('this is no filter')));
  });

  describe('transactions', () => {
    const at = (rowKey, rest = {}) => ({partitionKey: 'batch', rowKey, ...rest});
    check('12.3', 'A transaction of every kind of operation is applied', async () => {
      for (const row of ['update', 'delete']) await table.createEntity(at(row, {a: 1}));
      const batch = new TableTransaction();
      batch.createEntity(at('create', {s: 'it\'s {odd}'}));
      batch.updateEntity(at('update', {b: 2}), 'Merge');
      batch.upsertEntity(at('upsert', {b: 2}), 'Replace');
      batch.deleteEntity('batch', 'delete');
      const answer = await table.submitTransaction(batch.actions);
      assert.equal(answer.status, 202);
      assert.deepEqual(answer.subResponses.map((r) => r.status), [204, 204, 204, 204]);
      assert.equal(answer.getResponseForEntity('create').etag, (await table.getEntity('batch', 'create')).etag);
      assert.deepEqual([(await table.getEntity('batch', 'update')).a, (await table.getEntity('batch', 'update')).b], [1, 2]);
      await refused(404, 'ResourceNotFound', () => table.getEntity('batch', 'delete'));
    });
    check('12.4', 'A transaction with one conflict applies nothing and says which operation it was', async () => {
      await table.createEntity(at('there'));
      const batch = new TableTransaction();
      batch.createEntity(at('new'));
      batch.createEntity(at('there'));
      await assert.rejects(() => table.submitTransaction(batch.actions), (error) => {
        assert.equal(error.statusCode, 409);
        assert.equal(codeOf(error), 'EntityAlreadyExists');
        assert.match(error.message, /^1:/);
        return true;
      });
      await refused(404, 'ResourceNotFound', () => table.getEntity('batch', 'new'));
    });
  });

  describe('access', () => {
    const soon = (hours) => new Date(Date.now() + hours * 3600e3);
    const withToken = (token) => new TableClient(endpoint, table.tableName, new AzureSASCredential(token), options);

    check('14.2', 'A request signed with another key is 403 AuthenticationFailed', async () => {
      const other = new AzureNamedKeyCredential(account, Buffer.from('another key').toString('base64'));
      const stranger = new TableClient(endpoint, table.tableName, other, options);
      await refused(403, 'AuthenticationFailed', () => stranger.getEntity('p', 'r'));
    });
    check('14.4', 'A table token reads its key range and writes nothing', async () => {
      for (const p of ['sasA', 'sasB']) await table.upsertEntity({partitionKey: p, rowKey: '1'});
      const client = withToken(generateTableSas(table.tableName, credential, {
        expiresOn: soon(1), permissions: {query: true}, startPartitionKey: 'sasB', endPartitionKey: 'sasB'}));
      assert.deepEqual((await collect(client.listEntities())).map((e) => e.partitionKey), ['sasB']);
      await refused(403, null, () => client.upsertEntity({partitionKey: 'sasB', rowKey: '1'}));
      await refused(404, 'ResourceNotFound', () => client.getEntity('sasA', '1'));
    });
    check('14.4', 'A table token writes a transaction, the token standing in the outer address only', async () => {
      const client = withToken(generateTableSas(table.tableName.toUpperCase(), credential, {
        expiresOn: soon(1), permissions: {add: true, update: true, delete: true}}));
      const batch = new TableTransaction();
      batch.upsertEntity({partitionKey: 'sasT', rowKey: '1', a: 1}, 'Replace');
      batch.upsertEntity({partitionKey: 'sasT', rowKey: '2', a: 2}, 'Merge');
      assert.equal((await client.submitTransaction(batch.actions)).status, 202);
      assert.equal((await table.getEntity('sasT', '2')).a, 2);
    });
    check('14.5', 'An account token lists tables when it may, and not when it may not', async () => {
      const as = (permissions, resourceTypes) => new TableServiceClient(endpoint, new AzureSASCredential(
        generateAccountSas(credential, {expiresOn: soon(1), permissions, resourceTypes})), options);
      assert.ok((await collect(as({list: true}, 'c').listTables())).length > 0);
      await refused(403, null, () => collect(as({query: true}, 'o').listTables()));
    });
    check('15', 'Stored policies come back', async () => {
      await table.setAccessPolicy([{id: 'readers', accessPolicy: {start: soon(-1), expiry: new Date('2030-01-01T00:00:00Z'), permission: 'r'}}]);
      const [policy] = await table.getAccessPolicy();
      assert.equal(policy.id, 'readers');
      assert.equal(policy.accessPolicy.permission, 'r');
      assert.equal(policy.accessPolicy.expiry.toISOString(), '2030-01-01T00:00:00.000Z');
      await table.setAccessPolicy([]);
    });
    check('16.1', 'Service properties come back as they were set', async () => {
      const off = {enabled: false, retentionPolicy: {enabled: false}, version: '1.0'};
      const rule = {allowedOrigins: '*', allowedMethods: 'GET', allowedHeaders: '*', exposedHeaders: '*', maxAgeInSeconds: 5};
      await service.setProperties({hourMetrics: off, minuteMetrics: off, cors: [rule]});
      assert.deepEqual((await service.getProperties()).cors.map((r) => [r.allowedOrigins, r.maxAgeInSeconds]), [['*', 5]]);
      await service.setProperties({hourMetrics: off, minuteMetrics: off, cors: []});
      assert.equal(((await service.getProperties()).cors ?? []).length, 0);
    });
    check('16.2', 'Statistics are answered on the address that the SDK asks', async () => {
      assert.equal((await service.getStatistics()).geoReplication.status, 'live');
    });
  });
});
