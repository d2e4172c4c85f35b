BEGIN TRANSACTION;
CREATE TABLE shapedp_dataset (
	id INTEGER NOT NULL,
	name TEXT NOT NULL,
	created TEXT NOT NULL,
	adjacency TEXT NOT NULL,
	filter TEXT NOT NULL,
	totals TEXT NOT NULL,
	entries BIGINT NOT NULL,
	head TEXT NOT NULL,
	seal TEXT NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (name)
);
INSERT INTO "shapedp_dataset" VALUES(1,'d','2026-11-15T23:23:50.749277+00:00','replace','{"capacities":["351699506059454525704626037279766668472131371000592859136"],"delta":1e-06,"epsilon":1.0,"failure_capacity":"0","failure_share":0.0,"orders":[],"rule":"gaussian"}','{"amounts":["234466337372970183212247169811070840029043616991938609152"],"failure":"0"}',3,'3be8bb5f31c4f9883608174bc978a282a850ba19f7511c195c1dfb76d01897a0','bea4acc3e8d18a89e75175b8752c829ca8ca9ef19e888ccc1541421585008aaa');
INSERT INTO "shapedp_dataset" VALUES(2,'b','2026-11-15T23:23:50.779234+00:00','replace','{"capacities":["6277101735386680763835789423207666416102355444464034512896"],"delta":1e-06,"epsilon":1.0,"failure_capacity":"6277101735386680479785083635954284040050401890795520","failure_share":0.0,"orders":[],"rule":"basic"}','{"amounts":["0"],"failure":"0"}',0,'0000000000000000000000000000000000000000000000000000000000000000','ac2e6ebfb38b0ebbcaade3163a21a0e71419fb9c9cba8021317fec2d68a89b7b');
CREATE TABLE shapedp_document (
	digest TEXT NOT NULL,
	text TEXT NOT NULL,
	PRIMARY KEY (digest)
);
INSERT INTO "shapedp_document" VALUES('355860b6f5ac6e06e4ea6878fe8cf281440f609d74b7b45695eda36089e2fca5','{"adjacency":"replace","bracket":{"lower":3.1938779522016127e-21,"upper":3.1938779522063342e-21},"delta":1e-06,"epsilon":1.0,"kind":"certificate","method":"GaussianLoss","reason":"","schema":1,"secure":null,"subject":{"delta":1e-06,"epsilon":1.0,"kind":"additive","law":{"dim":1,"law":"gaussian","scale":8.961897272936058,"sizes":null},"recipe":null,"schema":1,"sensitivity":{"adjacency":"replace","dim":1,"radius":1.0,"scales":null,"set":"l2"}},"verdict":"certified","version":"0.1.0"}');
CREATE TABLE shapedp_entry (
	id INTEGER NOT NULL,
	dataset_id INTEGER NOT NULL,
	sequence BIGINT NOT NULL,
	time TEXT NOT NULL,
	count BIGINT NOT NULL,
	mechanism TEXT NOT NULL,
	certificate TEXT NOT NULL,
	cost TEXT NOT NULL,
	state TEXT NOT NULL,
	ended TEXT NOT NULL,
	secure INTEGER NOT NULL,
	digest TEXT NOT NULL,
	PRIMARY KEY (id),
	FOREIGN KEY(dataset_id) REFERENCES shapedp_dataset (id),
	FOREIGN KEY(certificate) REFERENCES shapedp_document (digest)
);
INSERT INTO "shapedp_entry" VALUES(1,1,1,'2026-11-15T23:23:50.808409+00:00',1,'{"text":"Additive(law=Gaussian(spread=Spread(values=array([8.96189727]), dim=1, sizes=None)), sensitivity=L2(radius=1.0, shape=(1,), scales=None, adjacency=''replace''), epsilon=1.0, delta=1e-06, recipe=None)","type":"shapedp.mechanisms.additive.Additive"}','355860b6f5ac6e06e4ea6878fe8cf281440f609d74b7b45695eda36089e2fca5','{"amounts":["78155445790990061070749056603690280009681205663979536384"],"failure":"0"}','released','2026-11-15T23:23:50.833574+00:00',1,'4fc1acaa23fdfa2bdcf77c7b290076046097bda48be2a135a1014c267a0eb8e6');
INSERT INTO "shapedp_entry" VALUES(2,1,2,'2026-11-15T23:23:50.869832+00:00',1,'{"text":"Additive(law=Gaussian(spread=Spread(values=array([8.96189727]), dim=1, sizes=None)), sensitivity=L2(radius=1.0, shape=(1,), scales=None, adjacency=''replace''), epsilon=1.0, delta=1e-06, recipe=None)","type":"shapedp.mechanisms.additive.Additive"}','355860b6f5ac6e06e4ea6878fe8cf281440f609d74b7b45695eda36089e2fca5','{"amounts":["78155445790990061070749056603690280009681205663979536384"],"failure":"0"}','abandoned','2026-11-15T23:23:50.896862+00:00',0,'4d3db5c74cd54ec07111648ecae80205979d0880db7a84fcab2b785f50347be0');
INSERT INTO "shapedp_entry" VALUES(3,1,3,'2026-11-15T23:23:50.926623+00:00',1,'{"text":"Additive(law=Gaussian(spread=Spread(values=array([8.96189727]), dim=1, sizes=None)), sensitivity=L2(radius=1.0, shape=(1,), scales=None, adjacency=''replace''), epsilon=1.0, delta=1e-06, recipe=None)","type":"shapedp.mechanisms.additive.Additive"}','355860b6f5ac6e06e4ea6878fe8cf281440f609d74b7b45695eda36089e2fca5','{"amounts":["78155445790990061070749056603690280009681205663979536384"],"failure":"0"}','reserved','2026-11-15T23:23:50.926623+00:00',0,'3be8bb5f31c4f9883608174bc978a282a850ba19f7511c195c1dfb76d01897a0');
CREATE TABLE shapedp_ledger (
	id INTEGER NOT NULL,
	schema_version INTEGER NOT NULL,
	PRIMARY KEY (id)
);
INSERT INTO "shapedp_ledger" VALUES(1,1);
CREATE UNIQUE INDEX shapedp_entry_order ON shapedp_entry (dataset_id, sequence);
COMMIT;
