BEGIN TRANSACTION;
CREATE TABLE shapedp_dataset (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	created TEXT NOT NULL, 
	adjacency TEXT NOT NULL, 
	filter TEXT NOT NULL, 
	vouching INTEGER NOT NULL, 
	totals TEXT NOT NULL, 
	entries BIGINT NOT NULL, 
	events BIGINT NOT NULL, 
	genesis TEXT NOT NULL, 
	chain TEXT NOT NULL, 
	marks TEXT NOT NULL, 
	seal TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "shapedp_dataset" VALUES(1,'d','2026-11-18T13:42:32.379565+00:00','replace','{"capacities":["351699506059454525704626037279766668472131371000592859136"],"delta":1e-06,"epsilon":1.0,"failure_capacity":"0","failure_share":0.0,"orders":[],"rule":"gaussian"}',0,'{"amounts":["156310891581980122141498113207380560019362411327959072768"],"failure":"0"}',2,5,'1c54a27a654dd7f60fe22e072c40c80ee94caaad049be2c9054799f39bd5c0d7','603baa0cce56b14665bf2797cc5573b2f86b7cf9a272a9ca8b8475b3c1ed6db8','a729ef991b604b408097cbe85a6311c61def0cf668b226e68fac587bea52a4b4b454db375a43386a71980104eb6aaefe6f25e7d93e7699c7420e50738976e1b3af92ce18631131cdcd910a3f65cd58cf9ba5ceae495100ef02e37829817025166f567177fd8b8a7502e0873a4e0aa07bfc92dd7062f11d38a8d3535ba9c644ac64deb46bae9abfc975a9eed7821ae642c271e8ef59eb588cb60a464fd6f87de86d6c8afee1103a1dc358cbecc6c33ee5e78e0293f4dfd8ad2a583921b21212cc4666566fdfc01954b1334917dd1bca06f00a8d3f2e520e9d10b1e102f26443f24c041bcb6c14fa61af2f5bf9259fc6910a611b34bdae67c9c47056bfee97b713','962ca455343850ee10049b40ed21db5e81accfdbe3a0cc5f187cb46c6c0e4e71');
INSERT INTO "shapedp_dataset" VALUES(2,'b','2026-11-18T13:42:32.447653+00:00','replace','{"capacities":["6277101735386680763835789423207666416102355444464034512896","3138550867693340239892541817977142020025200945397760","329427492298794864043003821312589913156839923338828578816","0","1"],"delta":1e-06,"epsilon":1.0,"failure_capacity":"0","failure_share":0.0,"orders":[],"rule":"either"}',0,'{"amounts":["0","0","0","0","0"],"failure":"0"}',0,0,'53bf5600c585ad1cf79b3755ca1cfe070966732f73e143b5d467eb4eb6b42b94','53bf5600c585ad1cf79b3755ca1cfe070966732f73e143b5d467eb4eb6b42b94','00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000','f3a03062cacd634900c9a92070a9333aacc9dabc4308b7c0826d40a7649d8d8f');
CREATE TABLE shapedp_document (
	digest TEXT NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "shapedp_document" VALUES('c2c3b4d2dd26f0d259ff0790db8580a6f120f6becbae12ee6c5af699abef4a8c','{"adjacency":"replace","assumptions":[],"bracket":{"lower":3.1938779522016127e-21,"upper":3.1938779522063342e-21},"delta":1e-06,"epsilon":1.0,"kind":"certificate","method":"GaussianLoss","reason":"","schema":1,"scope":"","secure":null,"subject":{"delta":1e-06,"epsilon":1.0,"kind":"additive","law":{"dim":1,"law":"gaussian","scale":8.961897272936058,"sizes":null},"recipe":null,"schema":1,"sensitivity":{"adjacency":"replace","dim":1,"radius":1.0,"scales":null,"set":"l2"}},"verdict":"certified","version":"0.1.0"}');
CREATE TABLE shapedp_entry (
	id INTEGER NOT NULL, 
	dataset_id INTEGER NOT NULL, 
	sequence BIGINT NOT NULL, 
	time TEXT NOT NULL, 
	count BIGINT NOT NULL, 
	taken BIGINT NOT NULL, 
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
INSERT INTO "shapedp_entry" VALUES(1,1,1,'2026-11-18T13:42:32.470455+00:00',1,1,'{"text":"Additive(law=Gaussian(spread=Spread(values=array([8.96189727]), dim=1, sizes=None)), sensitivity=L2(radius=1.0, shape=(1,), scales=None, adjacency=''replace''), epsilon=1.0, delta=1e-06, recipe=None, premises=())","type":"shapedp.mechanisms.additive.Additive"}','c2c3b4d2dd26f0d259ff0790db8580a6f120f6becbae12ee6c5af699abef4a8c','{"amounts":["78155445790990061070749056603690280009681205663979536384"],"failure":"0"}','released','2026-11-18T13:42:32.528628+00:00',1,'6c1628c72300666d399c6af30888cf25050aeed05d478b99692c526f81c4c955');
INSERT INTO "shapedp_entry" VALUES(2,1,2,'2026-11-18T13:42:32.567747+00:00',1,0,'{"text":"Additive(law=Gaussian(spread=Spread(values=array([8.96189727]), dim=1, sizes=None)), sensitivity=L2(radius=1.0, shape=(1,), scales=None, adjacency=''replace''), epsilon=1.0, delta=1e-06, recipe=None, premises=())","type":"shapedp.mechanisms.additive.Additive"}','c2c3b4d2dd26f0d259ff0790db8580a6f120f6becbae12ee6c5af699abef4a8c','{"amounts":["78155445790990061070749056603690280009681205663979536384"],"failure":"0"}','abandoned','2026-11-18T13:42:32.592082+00:00',0,'603baa0cce56b14665bf2797cc5573b2f86b7cf9a272a9ca8b8475b3c1ed6db8');
CREATE TABLE shapedp_ledger (
	id INTEGER NOT NULL, 
	schema_version INTEGER NOT NULL, 
	place TEXT, 
	PRIMARY KEY (id)
);
INSERT INTO "shapedp_ledger" VALUES(1,2,NULL);
CREATE UNIQUE INDEX shapedp_entry_order ON shapedp_entry (dataset_id, sequence);
COMMIT;
